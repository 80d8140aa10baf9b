"""A script whose agent is broken in one place after the other: broken.py hooks|listeners|drain. Each function that is
guarded, or each listener to an event, raises during one iteration; "drain" is what no recording goes on without. Prints
which were reached, and what spans each has left open."""

import functools
import gc
import sys
from types import FunctionType

import dpsight
import torch
from dpsight.recorder import core, events, recorder, thread
from opacus import PrivacyEngine
from torch import nn
from torch.utils.checkpoint import checkpoint

GUARD = next(c for c in core.guarded.__code__.co_consts if getattr(c, "co_name", "") == "decorate")
GUARD = next(c for c in GUARD.co_consts if getattr(c, "co_name", "") == "guard")

inner = nn.Sequential(nn.Linear(64, 64), nn.GELU()).to("cuda")
outer = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).to("cuda")
optimizer = torch.optim.AdamW([*inner.parameters(), *outer.parameters()])
scaler = torch.amp.GradScaler("cuda", enabled=False)
region = torch.compile(torch.sin, backend="eager")
private = nn.Linear(64, 8).to("cuda")
sgd = torch.optim.SGD(private.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4, 64)), batch_size=4)
engine = PrivacyEngine()
private, sgd, data = engine.make_private(
    module=private, optimizer=sgd, data_loader=data, noise_multiplier=1.0, max_grad_norm=1.0, poisson_sampling=False
)


def iterate(i):
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
    nn.Linear(4, 4).to("cuda")
    torch.cuda.reset_peak_memory_stats()
    dpsight.metric("loss", None)
    dpsight.mark(["no", "name"])
    dpsight.tag(None, ["no"], {})
    dpsight.step("few")


def breaks(*args, **kwargs):
    reached.add(name)
    raise ValueError("broken")


def cell(guard, variable):
    return guard.__closure__[guard.__code__.co_freevars.index(variable)]


def places():
    """Each place that can be broken: its name, how to break it, and how to mend it."""
    if sys.argv[1] == "listeners":
        for event_name, event in vars(events).items():
            if isinstance(event, events.Event):
                for listener in list(event._listeners):
                    before = list(event._listeners)
                    ours = functools.wraps(listener)(lambda *args: breaks())
                    broken = [ours if other is listener else other for other in before]
                    yield (
                        f"{event_name} {listener.__module__}.{listener.__qualname__}",
                        lambda event=event, broken=broken: setattr(event, "_listeners", broken),
                        lambda event=event, before=before: setattr(event, "_listeners", before),
                    )
        return
    guards = [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__ is GUARD]
    for guard in sorted(guards, key=lambda g: (g.__module__, g.__qualname__)):
        function, what = cell(guard, "function"), cell(guard, "what").cell_contents
        if cell(guard, "fatal").cell_contents == (sys.argv[1] == "drain"):
            whole = function.cell_contents
            yield (
                f"{what} | {guard.__module__}.{guard.__qualname__}",
                lambda function=function: setattr(function, "cell_contents", breaks),
                lambda function=function, whole=whole: setattr(function, "cell_contents", whole),
            )


reached, left, name = set(), {}, ""
for i in range(4):
    iterate(i)
for name, break_, mend in list(places()):
    break_()
    for i in range(2):
        iterate(i)
    if thread.spans or thread.calls:
        left[name] = (list(thread.spans), list(thread.calls))
        thread.spans.clear()
        thread.calls.clear()
    mend()
    recorder.out.clear()
for i in range(4):
    iterate(i)
for each in sorted(reached):
    print("reached", each)
for each, spans in left.items():
    print("left", each, spans)
print("allocated", torch.cuda.memory_stats()["allocation.all.allocated"])
print("end")
