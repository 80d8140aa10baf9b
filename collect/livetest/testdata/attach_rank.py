"""Trains as a worker of torchrun, with dpsight attached. Rank 1 runs out of memory, which torchrun reports as usual."""

import os
import sys

import dpsight
import torch
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main() -> None:
    torch.distributed.init_process_group("gloo")
    dpsight.attach(sys.argv[1], name="worker")
    net = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    history = []
    for _ in range(3):
        out = net(torch.ones(1024, 512, device="cuda"))
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(out)
    if os.environ["RANK"] == "1":
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")  # PLANTED
    torch.distributed.barrier()


main()
