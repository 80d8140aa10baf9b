"""Trains past the first window of recorded steps, with growing batches and ever more kept tensors: windows.py STEPS.
Prints the bytes by category at the end of each step."""

import json
import sys

import torch
from torch import nn

steps = int(sys.argv[1])
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
criterion = nn.CrossEntropyLoss()
kept = []


def total(tensors):
    return sum(t.untyped_storage().nbytes() for t in tensors if t is not None and t.is_cuda)


for step in range(steps):
    if step == 20:  # adds a layer while nothing is recorded
        model.append(nn.Linear(10, 300).to("cuda"))
        optimizer.add_param_group({"params": list(model[-1].parameters())})
    n = 8 + step // 7
    x, y = torch.zeros(n, 64).to("cuda"), torch.zeros(n, dtype=torch.long).to("cuda")
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        kept.append(torch.empty(1000 * (step + 1), device="cuda"))
    state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    facts = {
        "step": step,
        "parameters": total(model.parameters()),
        "gradients": total([p.grad for p in model.parameters()]),
        "optimizer_state": total(state),
        "kept": total(kept),
    }
    print("FACTS " + json.dumps(facts))
