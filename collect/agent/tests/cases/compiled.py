"""torch.compile: compiled.py DEVICE MODE…, of module, inplace, subclass, blocks, function, hooks, step, optimizer. Four
steps each; prints the loss and Dynamo's counts."""

import sys

import torch
from torch import nn
from torch._dynamo.utils import counters

device = sys.argv[1]


class Doubling(nn.Sequential):
    """A module whose class defines __call__."""

    def _call_impl(self, *args, **kwargs):
        return super()._call_impl(*args, **kwargs) * 2


class Hooking(nn.Module):
    """Sets a hook on a tensor of the graph."""

    def forward(self, x):
        y = x * 2
        y.register_hook(lambda gradient: gradient * 3)
        return y.sin()


def train(mode):
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    kind = Doubling if mode == "subclass" else nn.Sequential
    model = kind(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.LayerNorm(16)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(8, 16).to(device)
    net = model
    if mode == "hooks":
        model.append(Hooking())
        model[0].weight.register_hook(lambda gradient: gradient * 2)
    if mode in ("module", "hooks"):
        net = torch.compile(model, backend="aot_eager")
    elif mode in ("inplace", "subclass"):
        model.compile(backend="aot_eager")
    elif mode == "blocks":
        for block in model:
            block.compile(backend="aot_eager")
    elif mode == "function":
        net = torch.compile(lambda z: model(z), backend="aot_eager")
    update = torch.compile(optimizer.step, backend="aot_eager") if mode == "optimizer" else optimizer.step

    def step():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        update()
        return loss

    run = torch.compile(step, backend="aot_eager") if mode == "step" else step
    for _ in range(4):
        loss = run()
    graphs, breaks = counters["stats"].get("unique_graphs", 0), sum(counters["graph_break"].values())
    value = 0.0 if device == "cuda" else loss.item()
    print(f"{mode} loss {value:.6f} graphs {graphs} breaks {breaks} recompiles {sum(counters['recompiles'].values())}")
    if device == "cuda":
        print("peak", torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated())


for mode in sys.argv[2:]:
    train(mode)
if device == "cuda":
    from taken import taken

    taken()
