"""Trains STEPS steps and keeps one tensor of BYTES bytes: stacks.py STEPS BYTES."""

import sys

import torch
from torch import nn


def make_model():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10)).cuda()


def keep(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def train(steps, size):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters())
    kept = keep(size)
    for _ in range(steps):
        x = torch.zeros(8, 64).cuda()
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    del kept


train(int(sys.argv[1]), int(sys.argv[2]))
