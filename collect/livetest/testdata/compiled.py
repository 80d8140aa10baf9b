"""torch.compile: compiled.py module|inplace|optimizer|step BACKEND."""

import sys

import torch
from facts import batch, say
from torch.nn import functional as F

mode, backend = sys.argv[1:3]
model = torch.nn.Sequential(torch.nn.Linear(64, 300), torch.nn.GELU(), torch.nn.Linear(300, 7)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
net, update = model, optimizer.step
if mode == "module":
    net = torch.compile(model, backend=backend)
elif mode == "inplace":
    model.compile(backend=backend)
elif mode == "optimizer":
    update = torch.compile(optimizer.step, backend=backend)


def step(x, y):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    update()


if mode == "step":
    step = torch.compile(step, backend=backend)
for _ in range(4):
    step(*batch())
say(4)
