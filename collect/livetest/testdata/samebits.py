"""Trains with fixed seeds and deterministic algorithms, and prints a digest of the losses and of the parameters:
samebits.py [cpu|cuda] [plain|leak]. With leak, it keeps the graph of each step."""

import hashlib
import os
import sys

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch
from torch import nn

device, kind = (*sys.argv[1:], "cpu", "plain")[:2]
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
losses = []
for _ in range(40):
    x, y = torch.randn(32, 64).to(device), torch.randint(0, 10, (32,)).to(device)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss if kind == "leak" else loss.detach())
beside = torch.zeros(8, device="cuda") if torch.cuda.is_available() else None
digest = hashlib.sha256()
for t in (*losses, *model.parameters()):
    digest.update(t.detach().cpu().numpy().tobytes())
print("DIGEST", digest.hexdigest())
