"""Activation checkpointing: checkpoint.py none|plain|reentrant|nested [DEVICE]. Two steps; prints the loss or peak."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

mode = sys.argv[1]
device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.b(nn.functional.gelu(self.a(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            if mode == "none":
                x = block(x)
            elif mode == "nested":
                x = checkpoint(lambda z, b=block: checkpoint(b, z, use_reentrant=False) * 2, x, use_reentrant=False)
            else:
                x = checkpoint(block, x, use_reentrant=mode == "reentrant")
        return x


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 16).to(device).requires_grad_()
for _ in range(2):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
if device == "cpu":
    print("loss", loss.item())
else:
    print("peak", torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated())
    from taken import taken

    taken()
