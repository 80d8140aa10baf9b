"""Counts what dpsight calls in forward, backward and zero_grad of each step but the instrumented ones: calls.py."""

import json
import os
import sys
from collections import Counter

import torch
from torch import nn

calls: Counter[str] = Counter()
marks = sys.modules["dpsight.marks"]
state = sys.modules["dpsight.state"].state
folder = os.path.dirname(marks.__file__)


def profile(frame, event, _arg):
    code = frame.f_code
    if event == "call" and os.path.dirname(code.co_filename) == folder:
        calls[f"{os.path.basename(code.co_filename)}:{code.co_name}"] += 1


torch.autograd.set_multithreading_enabled(False)  # only this thread is looked at
model = nn.Sequential(
    nn.Embedding(301, 64), *(nn.TransformerEncoderLayer(64, 4) for _ in range(3)), nn.Linear(64, 8)
).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(8):
    ids = torch.zeros(16, 4, dtype=torch.long, device="cuda")
    instrumented = state.instrumented
    calls.clear()
    if not instrumented:
        sys.setprofile(profile)
    model(ids).sum().backward()
    optimizer.zero_grad()
    sys.setprofile(None)
    if not instrumented:
        print("CALLS", json.dumps(calls, sort_keys=True))
    optimizer.step()
