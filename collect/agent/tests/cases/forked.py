"""Forks once CUDA is in use: forked.py workers|process|exit|failed|hung. In the last two the device fails instead."""

import os
import sys

import torch
from torch import multiprocessing, nn
from torch.utils.data import DataLoader, TensorDataset


class Failing(torch.cuda.Event):
    """What an event is on a device that has failed: nothing can be asked of it, and its end would end the process."""

    def query(self):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def __del__(self):
        os.write(2, b"destroyed\n")


class Hung(torch.cuda.Event):
    """What an event is on a device that hangs: it never happens."""

    def query(self):
        return False


def train(x):
    optimizer.zero_grad()
    model(x.cuda(non_blocking=True)).sum().backward()
    optimizer.step()


def child(then):
    """What a child does that leaves CUDA alone."""
    assert torch.randn(4, 4).sum().isfinite()
    then()


def forked(then):
    pid = os.fork()
    if pid == 0:
        child(then)
        sys.exit()
    assert os.waitpid(pid, 0)[1] == 0


mode = sys.argv[1]
if mode == "failed":
    torch.cuda.Event = Failing
if mode == "hung":
    torch.cuda.Event = Hung
model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
if mode == "workers":
    loader = DataLoader(
        TensorDataset(torch.randn(64, 64)), batch_size=16, num_workers=2, pin_memory=True, persistent_workers=True
    )
    for _ in range(2):
        for (batch,) in loader:
            train(batch)
    del loader  # torch waits 5 s for each worker that is left to the end of the process
else:
    for i in range(8):
        train(torch.randn(16, 64))
        if i % 3 == 1 and mode == "process":
            process = multiprocessing.get_context("fork").Process(target=child, args=(int,))
            process.start()
            process.join()
            assert process.exitcode == 0, process.exitcode
        if i % 3 == 1 and mode == "exit":
            forked(lambda: forked(int))  # a child of its own, and both end as any process does
if mode == "hung":
    os._exit(7)
