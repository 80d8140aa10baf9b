"""Trains STEPS steps: records_late.py STEPS. In step 190, between two windows, it begins to record torch's memory
history."""

import sys

import torch
from torch import nn

model = nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.SGD(model.parameters())
for step in range(int(sys.argv[1])):
    if step == 190:
        torch.cuda.memory._record_memory_history(context=None)
        planted = torch.empty(123_392, dtype=torch.uint8, device="cuda")
    optimizer.zero_grad()
    model(torch.zeros(8, 64).to("cuda")).sum().backward()
    optimizer.step()
events = torch.cuda.memory._snapshot()["device_traces"][0]
print("kept", sum(e["action"] == "alloc" and e["size"] == 123_392 for e in events))
