"""What a case says of itself, for the test to compare: one line of JSON a process."""

import json
import os
import sys

import torch

_before = 0  # highest peak before the counters were reset


def peak():
    """The highest that torch has counted, resets notwithstanding."""
    return max(_before, torch.cuda.max_memory_allocated())


def reset(function):
    """Calls one of torch's resets; the peak so far is remembered."""
    global _before
    _before = peak()
    function()


def say(steps):
    """Prints the facts; steps: updates that this process has made."""
    used = torch.cuda.is_initialized()
    line = {"pid": os.getpid(), "steps": steps, "peak": peak() if used else 0}
    sys.stdout.flush()
    # In one piece: several ranks write to the same pipe.
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
    """Inputs and targets, from the host as a data loader's are."""
    return torch.randn(n, width).cuda(), torch.randint(0, 7, (n,)).cuda()


def train(model, optimizer, steps, net=None):
    """A plain loop."""
    net = net or model
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
