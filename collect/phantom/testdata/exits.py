"""Ends right after a backward pass, and never releases Python's interpreter lock in between.

The autograd engine's thread needs the lock to drop the graph's hooks, and gets it only while Python shuts down.
"""

import json
import sys
import time

import torch

model = torch.nn.Linear(10, 10).cuda()
model.register_full_backward_hook(lambda *_: None)
json.dump({"end_ns": time.time_ns()}, sys.stdout)
sys.stdout.flush()
sys.setswitchinterval(60)
model(torch.randn(4, 10).cuda().requires_grad_()).sum().backward()
