"""Trains ten steps, and makes an optimizer's state before some of them: resumed.py
plain|fsdp|named|zeros|both|by_hand|evolution. The first three load a checkpoint into a new model after five steps.
zeros and both make the state of one or two optimizers with zero gradients before training. by_hand and evolution set
all gradients without a backward."""

import os
import sys

import torch
from facts import say
from torch import nn
from torch.distributed.checkpoint import state_dict
from torch.distributed.optim import _NamedOptimizer

kind = sys.argv[1]


def make():
    """Returns a model on the device and its optimizer."""
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to("cuda")
    if kind == "fsdp":
        from torch.distributed.fsdp import fully_shard

        fully_shard(net)
    if kind == "evolution":
        return net, torch.optim.SGD(net.parameters(), lr=0.1)
    if kind == "named":
        return net, _NamedOptimizer(net.named_parameters(), torch.optim.Adam, lr=0.001)
    return net, torch.optim.Adam(net.parameters())


def train(net, optimizers, steps):
    """Trains a model; each step updates with all optimizers."""
    for _ in range(steps):
        net(torch.randn(8, 64).to("cuda")).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        net.zero_grad()


def set_gradients(optimizer, gradient):
    """Sets all gradients without a backward."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = gradient(p)


if kind == "fsdp":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
model, adam = make()
if kind in ("plain", "fsdp"):
    train(model, [adam], 5)
    saved = state_dict.get_state_dict(model, adam)
    fresh, other = make()
    state_dict.set_optimizer_state_dict(fresh, other, saved[1])
    del model, adam, saved
    train(fresh, [other], 5)
elif kind == "named":
    train(model, [adam], 5)
    model, adam = make()
    adam.init_state()
    train(model, [adam], 5)
elif kind in ("zeros", "both"):
    halves = [adam]
    if kind == "both":
        halves = [torch.optim.Adam(layer.parameters()) for layer in (model[0], model[2])]
    for each in halves:
        set_gradients(each, torch.zeros_like)
        each.step()
        each.zero_grad()
    train(model, halves, 10)
else:
    for _ in range(10):
        if kind == "evolution":
            with torch.no_grad():
                model(torch.randn(8, 64).to("cuda"))
        set_gradients(adam, torch.randn_like)
        adam.step()
        adam.zero_grad()
say(10)
