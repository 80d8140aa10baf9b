"""Trains a model, while a new thread in each step trains another model: beside.py SECONDS. The models share nothing.
But each step ends between the other model's forward and backward, while torch's engine may wait for Python's
interpreter lock to call the hooks of a parameter."""

import sys
import threading
import time

import dpsight
import torch
from torch import nn

sys.setswitchinterval(1e-6)


class Many(nn.Module):
    """A model with many small parameters."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(4)) for _ in range(300))

    def forward(self, x):
        return torch.stack([x * w for w in self.weights])


ours, theirs = Many().cuda(), Many().cuda()
optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
dpsight.plan(warmup=2, timed=100_000)  # so that instrumented and bare steps alternate to the end
x = torch.zeros(4, device="cuda")
called = threading.Event()


def other():
    out = theirs(x).sum()
    called.set()
    out.backward()


end = time.monotonic() + float(sys.argv[1])
steps = 0
while time.monotonic() < end:
    ours(x).sum().backward()
    optimizer.step()
    called.clear()
    thread = threading.Thread(target=other)
    thread.start()
    called.wait()
    dpsight.step()
    thread.join()
    steps += 1
print("STEPS", steps)
