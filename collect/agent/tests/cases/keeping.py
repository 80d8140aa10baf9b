"""Trains three steps with libraries of differential privacy that keep other tensors than Opacus, then evaluates two
batches: keeping.py DEVICE fast|biases|samples|ghost. The libraries are small ones, built like fastDP and
private-transformers. The model has an attribute with the name of one of the libraries' attributes."""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent / "libraries"))
from fastDP import privacy_engine as fast_dp  # noqa: E402
from private_transformers import privacy_engine as private_transformers  # noqa: E402

device, mode = sys.argv[1], sys.argv[2]
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 5)).to(device)
model[1].activations = torch.zeros(4096, device=device)
layers, reduction = [model[0], model[2]], "none"
if mode == "biases":
    for layer in layers:
        layer.weight.requires_grad_(False)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)
if mode in ("fast", "biases"):
    fast_dp.PrivacyEngine(model, layers).attach(optimizer)
    reduction = "mean"
else:
    private_transformers.PrivacyEngine(model, layers, mode).attach(optimizer)
criterion = nn.CrossEntropyLoss(reduction=reduction)
x, y = torch.zeros(16, 64, device=device), torch.zeros(16, dtype=torch.long, device=device)
for _ in range(3):
    loss = criterion(model(x), y)
    if reduction == "mean":
        loss.backward()
        optimizer.step()
    else:
        optimizer.step(loss)
    optimizer.zero_grad()
    del loss
model.eval()
with torch.no_grad():
    for _ in range(2):
        model(torch.zeros(32, 64, device=device))
