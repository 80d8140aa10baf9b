"""Trains, and keeps tensors of known sizes by names of its own, next to objects that notice if their code is run:
strays.py.

Prints one line of JSON: the name, address and bytes of each tensor, and the code of the script that the agent ran.
"""

import collections
import functools
import json
import sys
import time

import torch
from torch import nn

ELEMENTS = iter(range(500_009, 10_000_000, 100_003))  # numbers of elements of 4 bytes, different for each tensor
planted, ran = {}, []
armed = False


def plant(name):
    tensor = torch.ones(next(ELEMENTS), device="cuda")
    planted[name] = [tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()]
    return tensor


def noticed(what):
    if armed:
        ran.append(what)


class Meta(type):
    @property
    def __dict__(cls):
        noticed("a metaclass's __dict__")
        return {}


class Wary(metaclass=Meta):
    def __init__(self):
        object.__setattr__(self, "inner", plant("global wary"))

    @property
    def __class__(self):
        noticed("__class__")
        return Wary

    @property
    def value(self):
        noticed("a property")

    def __getattribute__(self, name):
        noticed(f"__getattribute__ of {name}")
        return object.__getattribute__(self, name)


class Closed:
    """A class whose __dict__ is a property."""

    def __init__(self):
        self.inner = 1

    @property
    def __dict__(self):
        noticed("__dict__")
        return {}


class Entries(dict):
    def values(self):
        noticed("values")
        return super().values()

    def __iter__(self):
        noticed("__iter__ of a dictionary")
        return super().__iter__()

    def __len__(self):
        noticed("__len__")
        return super().__len__()


class Items(list):
    def __iter__(self):
        noticed("__iter__ of a list")
        return super().__iter__()


class Subclass(torch.Tensor):
    @property
    def is_cuda(self):
        noticed("is_cuda")
        return super().is_cuda

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        noticed("__torch_function__")
        return super().__torch_function__(function, types, args, kwargs or {})


def closing():
    held = plant("closure of closing.<locals>.loss")

    def loss(out):
        return out.square().mean() + 0 * held[0]

    return loss


def hooked(module):
    held = plant("closure of hooked.<locals>.hook")

    def hook(_module, _args, _out):
        return held is None or None

    module.register_forward_hook(hook)


def hooked_tensor(tensor):
    held = plant("closure of hooked_tensor.<locals>.hook")

    def hook(gradient):
        return gradient + 0 * held[0]

    tensor.register_hook(hook)


def late(tensor):
    held = plant("closure of late.<locals>.hook")

    def hook(gradient):
        return gradient + 0 * held[0]

    tensor.register_hook(hook)


def removed(tensor):
    """Registers a hook that holds a tensor, and removes it again."""
    held = torch.ones(700_001, device="cuda")
    tensor.register_hook(lambda gradient: gradient + 0 * held[0]).remove()


class Scaling:
    """A hook of a leaf tensor that is a callable object."""

    def __init__(self, name):
        self.held = plant(name)

    def __call__(self, tensor):
        tensor.grad += 0 * self.held[0]


def defaulting(x, scale=plant("default of defaulting")):  # noqa: B008
    return x * scale[:1]


def partially(scale, x):
    return x * scale[:1]


wary, closed, subclass = Wary(), Closed(), torch.ones(8, device="cuda").as_subclass(Subclass)
entries, items = Entries(a=[plant("global entries")]), Items([plant("global items")])
queue = collections.deque([plant("global queue")], maxlen=3)
loss, double = closing(), functools.partial(partially, plant("partial of partially"))
model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8)).cuda()
hooked(model[1])
hooked_tensor(model[0].weight)
removed(model[0].weight)
model[0].bias.register_post_accumulate_grad_hook(Scaling("tensor hook"))
targets = plant("global targets")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
many = [str(i) for i in range(900)]
armed = True
for step in range(7):
    if step == 4:  # a bare step
        late(model[1].weight)
    optimizer.zero_grad()
    loss(double(model(defaulting(torch.ones(4, 64).cuda())))).backward()
    optimizer.step()
armed = False
walk = sys.modules.get("dpsight.taggers.script_tensors")
took = []
for _ in range(20 if walk else 0):
    began = time.perf_counter()
    walk.script_tensors.records(set())
    took.append(1e3 * (time.perf_counter() - began))
print("STRAYS " + json.dumps({"planted": planted, "ran": ran, "ms": min(took, default=0)}), flush=True)
