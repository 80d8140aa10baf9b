"""Trains four steps with checkpointed blocks: checkpointed.py plain|reentrant|nested|debug. Prints the address of
each block's input in the last step."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

mode = sys.argv[1]
blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 64)) for _ in range(3)).to("cuda")
optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)


class Net(nn.Module):
    def forward(self, x, step):
        for block in blocks:
            if step == 3:
                print("input", x.data_ptr())
            if mode == "nested":
                x = checkpoint(lambda z, b=block: checkpoint(b, z, use_reentrant=False) * 2, x, use_reentrant=False)
            elif mode == "debug":
                x = checkpoint(block, x, use_reentrant=False, debug=True)
            else:
                x = checkpoint(block, x, use_reentrant=mode == "reentrant")
        return x


net = Net()
for step in range(4):
    optimizer.zero_grad()
    net(torch.randn(32, 64).to("cuda").requires_grad_() * 1, step).sum().backward()
    optimizer.step()
