"""Prints the facts about a process that the test compares with the tables: one line of JSON a process."""

import json
import os
import sys

import torch

_before = 0  # the highest peak before torch's counters were last reset


def peak():
    """Returns the highest peak that torch has counted, also before resets."""
    return max(_before, torch.cuda.max_memory_allocated())


def reset(function):
    """Calls one of torch's functions that reset counters, and remembers the peak so far."""
    global _before
    _before = peak()
    function()


def say(steps):
    """Prints the facts. steps is the number of updates that this process has made."""
    used = torch.cuda.is_initialized()
    line = {"pid": os.getpid(), "steps": steps, "peak": peak() if used else 0}
    sys.stdout.flush()
    # The line is written at once, since several ranks write to the same pipe.
    os.write(1, f"FACTS {json.dumps(line)}\n".encode())


class Net(torch.nn.Module):
    """A small net whose largest layer is no round number of bytes."""

    def __init__(self, width=64, hidden=3000):
        super().__init__()
        self.norm, self.up = torch.nn.LayerNorm(width), torch.nn.Linear(width, hidden)
        self.down, self.head = torch.nn.Linear(hidden, width), torch.nn.Linear(width, 7, bias=False)

    def forward(self, x):
        return self.head(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))


def batch(n=16, width=64):
    """Returns inputs and targets, copied from the host as a data loader's are."""
    return torch.randn(n, width).cuda(), torch.randint(0, 7, (n,)).cuda()


def train(model, optimizer, steps, net=None):
    """Trains in a plain loop."""
    net = net or model
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
