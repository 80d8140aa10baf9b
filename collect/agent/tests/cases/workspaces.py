"""Convolutions whose workspaces fail while torch tries cuDNN's algorithms, and one for which nothing is left at all.
Prints for each attempt whether it went well, and how many requests failed."""

import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()).cuda()
x = torch.zeros(64, 3, 32, 32, device="cuda")


def train():
    net.zero_grad()
    net(x).sum().backward()


train()
torch.cuda.empty_cache()
least, whole = torch.cuda.memory_reserved(), torch.cuda.get_device_properties(0).total_memory
for extra in range(64, 16, -4):
    before = torch.cuda.memory_stats()["num_ooms"]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((least + (extra << 20)) / whole)
    try:
        train()
        well = "well"
    except torch.OutOfMemoryError:
        well = "out"
    print(well, torch.cuda.memory_stats()["num_ooms"] - before)
