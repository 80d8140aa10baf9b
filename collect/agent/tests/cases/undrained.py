"""Trains while drains fail: undrained.py before|after|always. Two drains fail before or after they have emptied
torch's event history, or all drains fail."""

import pickle
import sys

import torch
from dpsight.recorder import allocator
from torch import nn

left = {"before": 2, "after": 2, "always": 1 << 30}[sys.argv[1]]


def failing(function):
    def fails(*args, **kwargs):
        global left
        if left:
            left -= 1
            raise ValueError("broken")
        return function(*args, **kwargs)

    return fails


class Pickle:
    dumps = staticmethod(failing(pickle.dumps))


model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    if step == 3 and sys.argv[1] == "after":
        allocator.pickle = Pickle
    elif step == 3:
        allocator.private.memory_snapshot = failing(allocator.private.memory_snapshot)
    optimizer.zero_grad()
    model(torch.randn(16, 64).to("cuda")).sum().backward()
    optimizer.step()
