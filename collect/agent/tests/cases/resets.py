"""Trains, resets torch's memory counters, and records torch's memory history itself: resets.py FILE."""

import pickle
import sys

import torch
from torch import nn

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    model(torch.randn(8, 64).cuda()).sum().backward()
    optimizer.step()


step()
torch.cuda.reset_peak_memory_stats()
step()
torch.cuda.memory.reset_accumulated_memory_stats()
step()
try:
    torch.cuda.memory._record_memory_history(unknown=True)
except TypeError:
    print("refused")
step()
torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
step()
step()
torch.cuda.memory._dump_snapshot(sys.argv[1])
torch.cuda.memory._record_memory_history(enabled=None)
step()
with open(sys.argv[1], "rb") as f:
    trace = pickle.load(f)["device_traces"][0]
print("events", sum(e["action"] == "alloc" for e in trace), "with frames", sum(bool(e.get("frames")) for e in trace))
