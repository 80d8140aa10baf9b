"""Forks while CUDA is in use: forked.py workers|process|exit. With failed or hung, it does not fork, and the device
fails."""

import os
import sys

import torch
from torch import multiprocessing, nn
from torch.utils.data import DataLoader, TensorDataset


class Failing(torch.cuda.Event):
    """Stands for a CUDA event on a device that has failed: a query raises, and destroying it would end the process."""

    def query(self):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def __del__(self):
        os.write(2, b"destroyed\n")


class Hung(torch.cuda.Event):
    """Stands for a CUDA event on a device that hangs: it never happens."""

    def query(self):
        return False


def train(x):
    optimizer.zero_grad()
    model(x.cuda(non_blocking=True)).sum().backward()
    optimizer.step()


def child(then):
    """Computes in a child process without CUDA."""
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
    del loader  # otherwise torch waits 5 s for each worker at the process's end
else:
    for i in range(8):
        train(torch.randn(16, 64))
        if i % 3 == 1 and mode == "process":
            process = multiprocessing.get_context("fork").Process(target=child, args=(int,))
            process.start()
            process.join()
            assert process.exitcode == 0, process.exitcode
        if i % 3 == 1 and mode == "exit":
            forked(lambda: forked(int))  # the child forks again, and both children end normally
if mode == "hung":
    os._exit(7)
