"""Trains, and breaks a hook of the agent in the third step: broken.py WHAT. WHAT is the hook's name in the agent's
messages."""

import gc
import sys
from types import FunctionType

import torch
from facts import say
from torch import nn

if "dpsight" in sys.modules:
    from dpsight.recorder import core, drains


DRAINS = {"a drain": 1, "draining": 1 << 30}  # how many drains fail


def breaks(*args, **kwargs):
    raise ValueError("broken")


def break_drains(most):
    take, failed = drains._take, []

    def fails(*args):
        if len(failed) < most:
            failed.append(True)
            breaks()
        take(*args)

    drains._take = fails


def break_hook(what):
    if what in DRAINS:
        break_drains(DRAINS[what])
    for f in [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__.co_name == "guard"]:
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        if f.__module__.startswith("dpsight.") and cells["what"].cell_contents == what:
            cells["function"].cell_contents = breaks


model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
for step in range(6):
    if step == 2 and "dpsight" in sys.modules:
        assert core.recorder.level
        break_hook(sys.argv[1])
    optimizer.zero_grad()
    model(torch.randn(16, 64).to("cuda")).sum().backward()
    optimizer.step()
say(6)
