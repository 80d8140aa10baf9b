"""Trains modules whose inputs and outputs are structures, of another kind in each step: structures.py DEVICE KIND...
Prints the sum of the gradients or, on a GPU, the peak of each step."""

import collections
import dataclasses
import sys
import types
from typing import NamedTuple

import torch
from torch import nn

try:
    from dpsight import phase
except ImportError:  # without the agent
    phase = None
device = sys.argv[1]
torch.manual_seed(0)


@dataclasses.dataclass
class Plain:
    name: str
    out: torch.Tensor


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    name: str
    out: torch.Tensor


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As Hugging Face's ModelOutput: a dataclass, a dictionary, and no iterable of tensors."""

    name: str
    out: torch.Tensor

    def __post_init__(self):
        for field in dataclasses.fields(self):
            super().__setitem__(field.name, getattr(self, field.name))

    def __iter__(self):
        return iter(self.keys())


class Named(NamedTuple):
    name: str
    out: torch.Tensor


class Stubborn(dict):
    def values(self):
        raise AssertionError("nothing of the script's may run")

    __iter__ = keys = items = __len__ = __getitem__ = values


class Loud(collections.UserDict):
    @classmethod
    def __subclasshook__(cls, other):
        raise AssertionError("nothing of the script's may run")


class Guarded:
    def __getattr__(self, name):
        raise AssertionError("nothing of the script's may run")


def stale():
    """Returns a view whose grad_fn cannot be read, since its base was changed in place."""
    base = torch.ones(4, device=device, requires_grad=True) * 1
    view = base.chunk(2)[0]
    base.mul_(2)
    return view


WRAP = {
    "tensor": lambda x: x,
    "tuple": lambda x: ("name", x),
    "named": lambda x: Named("name", x),
    "list": lambda x: [None, 1, x],
    "dict": lambda x: {"name": "name", "out": x},
    "ordered": lambda x: collections.OrderedDict(out=x),
    "user dict": lambda x: collections.UserDict(out=x),
    "stubborn": lambda x: Stubborn(out=x),
    "output": lambda x: Output("name", x),
    "dataclass": lambda x: Plain("name", x),
    "slots": lambda x: Slotted("name", x),
    "namespace": lambda x: types.SimpleNamespace(out=x, guarded=Guarded()),
    "stale": lambda x: {"stale": stale(), "out": x},
    "nested": lambda x: {"parts": [(Plain("name", x), None), Guarded()]},
}
UNWRAP = {
    "tensor": lambda v: v,
    "tuple": lambda v: v[1],
    "named": lambda v: v.out,
    "list": lambda v: v[2],
    "dict": lambda v: v["out"],
    "ordered": lambda v: v["out"],
    "user dict": lambda v: v["out"],
    "stubborn": lambda v: dict.__getitem__(v, "out"),
    "output": lambda v: v.out,
    "dataclass": lambda v: v.out,
    "slots": lambda v: v.out,
    "namespace": lambda v: v.out,
    "stale": lambda v: v["out"],
    "nested": lambda v: v["parts"][0][0].out,
}


class Probe(torch.autograd.Function):
    """Names a phase when backward passes this place."""

    @staticmethod
    def forward(ctx, x, name):
        ctx.name = name
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if phase is not None and device == "cpu":
            with phase(ctx.name):
                pass
        return gradient.clone(), None


class Block(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.up, self.down = nn.Linear(widths[0], widths[1]), nn.Linear(widths[1], widths[2])

    def forward(self, value):
        return wrap(Probe.apply(self.down(torch.relu(self.up(take(value)))), "in block"))


class Net(nn.Module):
    """Also computes between its two blocks and after them, outside both."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Block(32, 64, 32), Block(32, 64, 128)

    def forward(self, x):
        x = unwrap(self.first(give(x)))
        x = Probe.apply(x, "between")
        x = unwrap(self.second(value=give(x)))  # by keyword
        loss = nn.functional.cross_entropy(x.float() * 1.5, torch.zeros(len(x), dtype=torch.long, device=device))
        return wrap(Probe.apply(loss, "in net"))


net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
for kind in sys.argv[2:]:
    wrap, unwrap = WRAP[kind], UNWRAP[kind]
    # The agent looks into plain objects only if a module returns them.
    give, take = (wrap, unwrap) if kind != "namespace" else (WRAP["tensor"], UNWRAP["tensor"])
    loss = Probe.apply(unwrap(net(torch.ones(256, 32, device=device))), "outside")
    loss.backward()
    optimizer.step()
    if device == "cuda":
        print("peak", torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated())
    else:
        print("gradients", sum(p.grad.abs().sum().item() for p in net.parameters()))
    optimizer.zero_grad()
    del loss
if device == "cuda":
    from taken import taken

    taken()
