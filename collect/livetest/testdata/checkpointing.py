"""Activation checkpointing: checkpointing.py reentrant|nonreentrant|nested|sequential."""

import sys

import torch
from facts import batch, say
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

mode = sys.argv[1]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(64), torch.nn.Linear(64, 1000), torch.nn.Linear(1000, 64)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = torch.nn.Sequential(*(Block() for _ in range(3))), torch.nn.Linear(64, 7)

    def forward(self, x):
        if mode == "sequential":
            x = checkpoint_sequential(self.blocks, 2, x, use_reentrant=False)
        for block in () if mode == "sequential" else self.blocks:
            if mode == "nested":
                x = checkpoint(lambda z, b=block: checkpoint(b, z, use_reentrant=False) * 2, x, use_reentrant=False)
            else:
                x = checkpoint(block, x, use_reentrant=mode == "reentrant")
        return self.head(x)


model = Deep().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x, y = batch()
    optimizer.zero_grad()
    F.cross_entropy(model(x.requires_grad_()), y).backward()
    optimizer.step()
say(4)
