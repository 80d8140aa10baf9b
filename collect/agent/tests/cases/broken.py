"""A script under an agent that is broken: a listener to each event raises, and with "hooks" what all hooks call does
too, each time: broken.py listeners|hooks. Prints which events were told and what the agent has caught."""

import sys

import dpsight
import torch
from dpsight.recorder import core, events, stamps, steps
from opacus import PrivacyEngine
from torch import nn
from torch.utils.checkpoint import checkpoint

caught = set()


def breaks(*args, **kwargs):
    raise ValueError("broken")


def failed(self, what, error, fatal=True):
    """In place of what ends recording: so every hook goes on, and fails again."""
    assert "broken" in str(error), error
    caught.add(what)


def events_of(module):
    return {name: event for name, event in vars(module).items() if isinstance(event, events.Event)}


def telling(self, *what):
    told.add(self)
    tell(self, *what)


told, tell = set(), events.Event.tell
events.Event.tell = telling
for event in events_of(events).values():
    event._listeners.insert(0, breaks)
if sys.argv[1] == "hooks":
    core.Recorder.failed = failed
    torch.cuda.init()
    for owner, names in ((stamps, ("stamp", "module", "engine_arrives")), (steps, ("keep_phases",))):
        for name in names:
            setattr(type(owner), name, breaks)

inner = nn.Sequential(nn.Linear(64, 64), nn.GELU()).to("cuda")
outer = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).to("cuda")
optimizer = torch.optim.AdamW([*inner.parameters(), *outer.parameters()])
scaler = torch.amp.GradScaler("cuda", enabled=False)
region = torch.compile(torch.sin, backend="eager")
private = nn.Linear(64, 8).to("cuda")
sgd = torch.optim.SGD(private.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 64)), batch_size=4)
private, sgd, data = PrivacyEngine().make_private(
    module=private, optimizer=sgd, data_loader=data, noise_multiplier=1.0, max_grad_norm=1.0, poisson_sampling=False
)
for i in range(6):
    with dpsight.phase("training"):
        x = torch.randn(8, 64).to("cuda").requires_grad_()
        optimizer.zero_grad()
        out = region(outer(checkpoint(inner, x, use_reentrant=i % 2 == 0)))
        scaler.scale(out.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    for (batch,) in data:
        sgd.zero_grad()
        private(batch.to("cuda")).sum().backward()
        sgd.step()
    dpsight.metric("loss", None)
    dpsight.mark(["no", "name"])
    dpsight.tag(None, ["no"], {})
    dpsight.step("few")
print("told", sorted(name for name, event in events_of(events).items() if event in told))
print("caught", sorted(caught))
print("end")
