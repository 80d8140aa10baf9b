"""Trains convolutions with ever less free memory, so that requests for cuDNN's workspaces fail, and in the end all
requests: workspaces.py [compiled|scripted]. With scripted, a request in TorchScript fails instead, which raises
another type of error. Prints for each attempt whether it succeeded, and how many requests failed."""

import sys

import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()).cuda()
x = torch.zeros(64, 3, 32, 32, device="cuda")
forward = torch.compile(net, backend="aot_eager") if sys.argv[1:] == ["compiled"] else net


def train():
    net.zero_grad()
    forward(x).sum().backward()


@torch.jit.script
def twice(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x])


def attempt(what) -> None:
    before = torch.cuda.memory_stats()["num_ooms"]
    try:
        what()
        well = "well"
    except RuntimeError as error:
        well = "out" if isinstance(error, torch.OutOfMemoryError) else "scripted"
    print(well, torch.cuda.memory_stats()["num_ooms"] - before)


train()
torch.cuda.empty_cache()
least, whole = torch.cuda.memory_reserved(), torch.cuda.get_device_properties(0).total_memory
if sys.argv[1:] == ["scripted"]:
    torch.cuda.set_per_process_memory_fraction((least + (1 << 20)) / whole)
    attempt(lambda: twice(x.expand(16, *x.shape)))
    sys.exit()
for extra in range(64, 16, -4):
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((least + (extra << 20)) / whole)
    attempt(train)
