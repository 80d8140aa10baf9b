"""Trains with gradient accumulation: two updates, each after three backward passes and clipping of the gradients'
norm."""

import torch
from torch import nn

model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(6):
    (model(torch.randn(4, 8)).square().mean() / 3).backward()
    if i % 3 == 2:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
