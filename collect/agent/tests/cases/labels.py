"""Gives dpsight names that are not valid text: labels.py KIND. "descriptors" closes all file descriptors from 3 on,
and opens files, which get the same numbers."""

import os
import sys

import dpsight
import torch

kind, bad = sys.argv[1], "a\udcff"
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
own = []
for step in range(6):
    if step == 2:
        if kind == "mark":
            dpsight.mark(bad)
        elif kind == "phase":
            with dpsight.phase(bad):
                pass
        elif kind == "config":
            dpsight.config(a=bad, **{bad: 1})
        elif kind == "metric":
            dpsight.metric(bad, 1.0)
        elif kind == "tag":
            kept = torch.zeros(10, device="cuda")
            dpsight.tag(kept, "activations", bad)
        elif kind == "descriptors":
            os.closerange(3, 256)
            own = [open(os.path.join(sys.argv[2], f"own-{i}"), "w+") for i in range(12)]
    optimizer.zero_grad()
    model(torch.randn(16, 64).to("cuda")).sum().backward()
    optimizer.step()
for file in own:
    file.write("mine")
    file.close()
print("end", [os.path.getsize(file.name) for file in own])
if kind == "raise":
    raise RuntimeError(bad)
