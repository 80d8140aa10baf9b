"""Trains a model on each of several devices, one after another: devices.py ORDINAL…. Prints the UUID of each device."""

import sys

import torch
from torch import nn

models = {}
for ordinal in map(int, sys.argv[1:]):
    model = nn.Linear(64, 64).to(f"cuda:{ordinal}")
    models[ordinal] = model, torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    for ordinal, (model, optimizer) in models.items():
        optimizer.zero_grad()
        model(torch.randn(8, 64, device=f"cuda:{ordinal}")).sum().backward()
        optimizer.step()
for ordinal in models:
    print(f"cuda:{ordinal} is {torch.cuda.get_device_properties(ordinal).uuid}")
