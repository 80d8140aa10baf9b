"""Trains until it is killed, or for STEPS steps: victim.py STEPS [worker] [children]. Prints each stage that it
reaches.

worker adds a data loader's worker. children adds a subprocess, and a grandchild in a session of its own that outlives
its parent.
"""

import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

steps = int(sys.argv[1])
print("setup", flush=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
optimizer = torch.optim.Adam(model.parameters())
if "children" in sys.argv:
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sh", "-c", "setsid sh -c 'sleep 1000 & sleep 1001' &"], start_new_session=True)
data = TensorDataset(torch.randn(8 * steps, 64))
loader = DataLoader(data, batch_size=8, num_workers=1 if "worker" in sys.argv else 0)
for i, (x,) in enumerate(loader):
    if i == 1:
        print("steps", flush=True)
    optimizer.zero_grad()
    model(x.cuda()).square().mean().backward()
    optimizer.step()
print("exit", flush=True)
