"""Computes per-sample gradients by torch.func: transforms.py func|module. "func" updates weights that belong to no
module. "module" updates the module's weights by an optimizer."""

import sys

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

BATCH = 16
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
weights = {k: v.detach() for k, v in model.named_parameters()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss(w, x, y):
    return nn.functional.cross_entropy(functional_call(model, w, (x[None],)), y[None])


for _ in range(4):
    x, y = torch.randn(BATCH, 64).cuda(), torch.randint(0, 10, (BATCH,)).cuda()
    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    if sys.argv[1] == "func":
        weights = {k: w - 0.1 * per_sample[k].mean(0) for k, w in weights.items()}
    else:
        for k, p in model.named_parameters():
            p.grad = per_sample[k].mean(0)
        optimizer.step()
        optimizer.zero_grad()
    del per_sample
print("end")
