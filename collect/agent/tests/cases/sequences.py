"""Trains with two optimizers, a step for each argument: sequences.py ORDER.... An argument is first, second or both,
and says which optimizers update in the step."""

import sys

import torch
from torch import nn

models = {"first": nn.Linear(4, 2), "second": nn.Linear(4, 2)}
optimizers = {
    "first": torch.optim.SGD(models["first"].parameters(), lr=0.1),
    "second": torch.optim.Adam(models["second"].parameters()),
}
for word in sys.argv[1:]:
    chosen = [optimizer for name, optimizer in optimizers.items() if word in (name, "both")]
    for optimizer in chosen:
        optimizer.zero_grad()
    sum(model(torch.randn(3, 4)) for model in models.values()).sum().backward()
    for optimizer in chosen:
        optimizer.step()
