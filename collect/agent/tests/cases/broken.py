"""Breaks the agent in one place after another: broken.py hooks|listeners|functions. Each guarded function, listener
or other function of the agent raises an error during two iterations. Prints all these places, those that were
reached, those that the journal does not name, and those after which a span stays open or the script makes another
number of allocations."""

import functools
import gc
import sys
from types import FunctionType

import dpsight
import torch
import torch.distributed as dist
from dpsight.endings import ending
from dpsight.recorder import core, events, recorder, steps, thread
from opacus import PrivacyEngine
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.utils._per_sample_grad import call_for_per_sample_grads
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
expanded = nn.Linear(8, 8).to("cuda")
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
sharded = nn.Linear(64, 8).to("cuda")
fully_shard(sharded)


def of_samples():
    """Computes per-sample gradients by torch.func, and by expanded weights."""

    def loss(parameters, x):
        return torch.func.functional_call(inner, parameters, (x,)).sum()

    with torch.no_grad():
        parameters = {name: p.detach() for name, p in inner.named_parameters()}
    torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, torch.ones(4, 64, device="cuda"))
    x = torch.ones(4, 8, device="cuda")
    call_for_per_sample_grads(expanded, batch_size=4)(x).sum().backward()
    for p in expanded.parameters():
        p.grad = p.grad_sample = None


def set_up():
    """Does what a script does in its set-up, as if no step had been made yet."""
    number, steps.number = steps.number, 0
    made = nn.Linear(4, 4).to("cuda")
    engine = PrivacyEngine(accountant="rdp")
    engine.accountant.step(noise_multiplier=1.0, sample_rate=1.0)  # the default accountant takes a quarter of a second
    engine.make_private(
        module=made,
        optimizer=torch.optim.SGD(made.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 4)), batch_size=2),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    engine.get_epsilon(delta=1e-5)
    steps.number = number


def end():
    """Runs the agent's code for the end of a process, although the process continues."""
    ending._uncaught(ValueError, ValueError("no end"), None)
    ending.finish()
    ending._ended = False


def fail():
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass


def iterate(i):
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
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
    of_samples()
    sharded(torch.ones(4, 64, device="cuda")).sum().backward()
    sharded.zero_grad()
    if i == 0 and (not name or any(part in name for part in FAILS)):  # the search for holders takes long
        fail()
    set_up()
    if any(part in name for part in ENDS):
        end()
    gc.collect(0)
    kept = nn.Linear(4, 4).to("cuda")
    kept.weight.register_hook(print)
    parallel = nn.parallel.DistributedDataParallel(kept)
    parallel(torch.ones(1, 4, device="cuda"))
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=1000)
    try:
        torch.cuda.memory._record_memory_history(of_another_torch=True)
    except TypeError:
        pass
    torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(None)
    dpsight.metric("loss", None)
    dpsight.mark(["no", "name"])
    dpsight.tag(None, ["no"], {})
    dpsight.step("few")
    return torch.cuda.memory_stats()["allocation.all.allocated"] - before


def breaks(*args, **kwargs):
    reached.add(name)
    raise ValueError("broken")


def cell(guard, variable):
    return guard.__closure__[guard.__code__.co_freevars.index(variable)]


def guards():
    """Yields the agent's guarded functions, each with a function that breaks it and one that restores it."""
    for guard in [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__ is GUARD]:
        function = cell(guard, "function")
        whole = function.cell_contents
        if not cell(guard, "fatal").cell_contents:
            yield (
                f"{cell(guard, 'what').cell_contents} | {guard.__module__}.{guard.__qualname__}",
                lambda function=function: setattr(function, "cell_contents", breaks),
                lambda function=function, whole=whole: setattr(function, "cell_contents", whole),
            )


def listeners():
    """Yields the functions that the agent's events call, each with a function that breaks it and one that restores
    it."""
    for event_name, event in vars(events).items():
        for listener in list(event._listeners) if isinstance(event, events.Event) else ():
            before = list(event._listeners)
            ours = functools.wraps(listener)(lambda *args: breaks())
            broken = [ours if other is listener else other for other in before]
            yield (
                f"{event_name} {listener.__module__}.{listener.__qualname__}",
                lambda event=event, broken=broken: setattr(event, "_listeners", broken),
                lambda: None,
            )


def functions():
    """Yields all other functions in the layers above the recorder, except replacements of torch's functions. Scripts
    call these, so all that they do beyond calling torch is in another function."""
    codes = {}
    for function in [f for f in gc.get_objects() if type(f) is FunctionType]:
        module = function.__globals__.get("__name__", "")
        if not module.startswith("dpsight.") or module.startswith(GROUND) or hasattr(function, "__wrapped__"):
            continue
        if (module, function.__qualname__) not in IN_PLACE:
            codes.setdefault(function.__code__, []).append(function)
    for code, those in codes.items():
        free = ", ".join(code.co_freevars)
        made = {"breaks": breaks}
        text = f"def make({free}):\n def f(*a, **k):\n  {free or 0}\n  {CALL}\n return f"
        exec(text, made)
        ours = made["make"](*code.co_freevars).__code__
        yield (
            f"{those[0].__globals__['__name__']}.{those[0].__qualname__}",
            lambda those=those, ours=ours: [setattr(f, "__code__", ours) for f in those],
            lambda those=those, code=code: [setattr(f, "__code__", code) for f in those],
        )


CALL = "__import__('sys').modules['__main__'].breaks()"
GROUND = tuple(f"dpsight.{m}" for m in ("recorder", "journal", "kinds", "masking", "interruptions", "agent", "api"))
IN_PLACE = {
    ("dpsight.hooks.backward", "install.<locals>.Engine.run_backward"),
    ("dpsight.prediction", "_settle_runs.<locals>.Settled.run_backward"),
    ("dpsight.hooks.checkpointing", "_recomputation.<locals>.Recomputation.__init__"),
    ("dpsight.hooks.checkpointing", "_recomputation.<locals>.Recomputation.__enter__"),
    ("dpsight.hooks.checkpointing", "_recomputation.<locals>.Recomputation.__exit__"),
    ("dpsight.hooks.optimizers", "install.<locals>.before"),
    ("dpsight.hooks.optimizers", "install.<locals>.after"),
    ("dpsight.taggers.gradient_hooks", "GradientHook.__call__"),
    ("dpsight.endings", "Ending.finish"),
    # The interpreter or torch's engine calls these functions, which catch errors of the functions that they call.
    ("dpsight.lines.script_lines", "Lines._reached"),
    ("dpsight.lines.script_lines", "Lines._left"),
    ("dpsight.lines.script_lines", "Lines._is_own"),
    ("dpsight.lines.script_lines", "_at_node.<locals>.at"),
    ("dpsight.lines.script_lines", "_mark_with_line"),
}
FAILS = ("failed_requests", "holders", "request_failed", "models")
ENDS = ("ending", "exception", "accountant", "process_ends", "exit_begins", "uncaught", "prediction", "garbage")
reached, left, taken, name = set(), {}, {}, ""
places = {"hooks": guards, "listeners": listeners, "functions": functions}
for i in range(4):
    taken[i % 2] = iterate(i)
for name, break_, mend in sorted(places[sys.argv[1]](), key=lambda place: place[0]):
    print("point", name)
    listening = [(event, event._listeners) for event in vars(events).values() if isinstance(event, events.Event)]
    failures = len(recorder._failures)
    break_()
    for i in range(2):
        if iterate(i) != taken[i]:
            print("differs", name)
    if thread.spans or thread.calls:
        left[name] = (list(thread.spans), list(thread.calls))
        thread.spans.clear()
        thread.calls.clear()
    if name in reached and len(recorder._failures) == failures:
        print("silent", name)
    mend()
    recorder.out.clear()
    for event, before in listening:
        event._listeners = before
for i in range(4):
    iterate(i)
for each in sorted(reached):
    print("reached", each)
for each, spans in left.items():
    print("left", each, spans)
print("end")
