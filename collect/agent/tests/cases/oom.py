"""Runs out of memory: oom.py caught|fatal."""

import sys

import torch
from torch import nn

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
