"""Runs out of memory: oom.py caught|fatal|locals."""

import gc
import sys
import weakref
from typing import Any

import torch
from torch import nn


def asking() -> None:
    """Makes a request fail in a function that has called locals()."""
    kept = torch.zeros(1 << 20, device="cuda")
    mine = locals()
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        print("mine", sorted(mine), mine["kept"] is kept)


def caller() -> Any:
    """Returns the local variables of the calling function."""
    return sys._getframe(1).f_locals


def asked_by_another() -> None:
    """Makes a request fail in a function whose local variables another function has read."""
    kept = torch.zeros(1 << 20, device="cuda")
    mine = caller()
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        print("another's", mine["kept"] is kept)


def letting_go() -> None:
    """Makes a request fail in a function that then drops a tensor and continues."""
    for _ in range(2):
        large = torch.zeros(1 << 20, device="cuda")
        held = torch.cuda.memory_allocated()
        try:
            torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            ref = weakref.ref(large)
            del large
        print("gone", ref() is None, held - torch.cuda.memory_allocated())


if sys.argv[1] == "locals":
    asking()
    asked_by_another()
    gc.collect()  # locals() makes a reference cycle, whose tensors would be freed at any time
    letting_go()
    sys.exit()

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 64).cuda()).sum()
    if i == 1:
        try:
            torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            if sys.argv[1] == "fatal":
                raise
    loss.backward()
    optimizer.step()
