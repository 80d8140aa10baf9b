"""Trains, and requests memory in many ways: lines.py [traced]. Some lines request as many bytes as their comments
say."""

import sys
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

traced = []
if "traced" in sys.argv:

    def tracer(frame, event, argument):
        traced.append(event)
        return tracer


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(512, 1024), nn.Linear(1024, 512)

    def inner(self, x):
        return torch.nn.functional.gelu(self.up(x))

    def forward(self, x):
        return x + self.down(self.inner(x)) * 0.5


def pieces(x):
    for i in range(2):
        yield x[i::2] * 3.0


def refuse(x):
    y = x * 4.0
    raise ValueError(y.shape)


model = nn.Sequential(Block(), Block()).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []
if "traced" in sys.argv:
    sys.settrace(tracer)


def other():
    kept.append(torch.ones(3 << 18, device="cuda"))  # 3 MiB, in a thread


for step in range(4):
    x = torch.randn(1024, 512, device="cuda")
    y = Double.apply(model(x))
    y = checkpoint(model[0], y, use_reentrant=False)
    y = torch.cat([p.tanh() for p in pieces(y)])
    try:
        refuse(y)
    except ValueError:
        y = y * 1.5
    y.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 1:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        kept.append(torch.ones(5 << 18, device="cuda"))  # 5 MiB
if "traced" in sys.argv:
    assert sys.gettrace() is tracer
    sys.settrace(None)
    assert traced
print("peak", torch.cuda.max_memory_allocated(), flush=True)
