"""Trains four steps, in which the agent stops following lines: lines_end.py budget|debugger."""

import sys

import torch
from dpsight.lines import script_lines

model = torch.nn.Linear(8, 8, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    if step == 2 and sys.argv[1] == "debugger":
        sys.settrace(lambda *_: None)
    if step == 1 and sys.argv[1] == "budget":
        script_lines.lines._spent_ns = lambda: 1e18
    model(torch.ones(8, 8, device="cuda")).sum().backward()
    optimizer.step()
