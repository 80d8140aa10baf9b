"""A plain loop: plain.py DEVICE STEPS. Prints the peak of each step on a GPU."""

import sys

import torch
from torch import nn

device, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
criterion = nn.CrossEntropyLoss()
for _ in range(steps):
    x, y = torch.randn(32, 256).to(device), torch.zeros(32, dtype=torch.long).to(device)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if device == "cuda":
        print("peak", torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated())
model.eval()
with torch.no_grad():
    model(x)
if device == "cuda":
    from taken import taken

    taken()
