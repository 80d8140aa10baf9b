"""Attaches dpsight in the middle of its training, runs out of memory, and detaches. Prints what it finds, as JSON."""

import gc
import json
import os
import signal
import sys
import threading
import time

import dpsight
import torch

STORE, CYCLES = sys.argv[1], int(sys.argv[2])
AS_ON_A_GPU = sys.argv[3:] == ["measured"]  # with bare steps and GPU times, which are fake here
PATCHED = (
    sys,
    os,
    torch,
    torch.nn.Module,
    torch.optim.Optimizer,
    torch.autograd.variable.Variable,
    torch.cuda,
    torch.cuda.memory,
    torch.amp.GradScaler,
    torch.Tensor,
    torch.OutOfMemoryError,
)

net = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
signals = []
signal.signal(signal.SIGUSR2, lambda number, frame: signals.append(number))


def step() -> None:
    net(torch.ones(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def state() -> dict:
    """Returns everything that attaching may change."""
    return {
        "names": {f"{owner}.{key}": id(value) for owner in PATCHED for key, value in vars(owner).items()},
        "threads": [thread.name for thread in threading.enumerate()],
        "tasks": len(os.listdir("/proc/self/task")),
        "files": sorted(_open_files()),
        "signal": id(signal.getsignal(signal.SIGUSR2)),
        "finders": [id(finder) for finder in sys.meta_path],
        "collections": len(gc.callbacks),
        "hooks": [p._post_accumulate_grad_hooks for p in net.parameters()],
        "step hooks": [len(h) for h in _optimizer_hooks()],
        "tracer": (sys.gettrace(), sys.getprofile()),
        "history": torch.cuda.memory._snapshot()["device_traces"] != [[]],
    }


def _open_files() -> list:
    names = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
    return [os.readlink(name) for name in names if os.path.lexists(name)]  # without the listing's own


def _optimizer_hooks() -> tuple:
    module = sys.modules["torch.optim.optimizer"]
    return module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks


for _ in range(3):
    step()
torch.cuda.device_count(), state()  # first calls, since they import modules and fill torch's caches
before = state()
older = torch.zeros(5 << 20, dtype=torch.uint8, device="cuda")
allocated = torch.cuda.memory_allocated()

if AS_ON_A_GPU:
    del os.environ["PHANTOM_PROFILE"]  # torch has already read it
flight = dpsight.attach(STORE, name="middle", events=50_000)
kept = []
for _ in range(4):
    step()
    kept.append(torch.zeros(8 << 20, dtype=torch.uint8, device="cuda"))
asked = dpsight.dump(wait=False)
os.kill(os.getpid(), signal.SIGUSR2)
try:
    torch.empty(1 << 40, dtype=torch.uint8, device="cuda")  # PLANTED
    caught = False
except torch.OutOfMemoryError:
    caught = True
step()
dpsight.detach()
del older, kept
time.sleep(0.5)  # the drain timer's thread ends when it next wakes
after = state()


def cycle() -> None:
    dpsight.attach(STORE, signals=True)
    step()
    dpsight.detach()


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


cycle()
gc.collect()
objects, rss = len(gc.get_objects()), resident()
for _ in range(CYCLES):
    cycle()
gc.collect()
time.sleep(0.5)
grown = {"objects": len(gc.get_objects()) - objects, "rss": resident() - rss}
last = state()
print(
    json.dumps(
        {
            "asked": str(asked),
            "runs": [str(folder) for folder in flight.runs],
            "signals": signals,
            "caught": caught,
            "allocated": allocated,
            "untraced": flight.untraced,
            "models": flight.found.models,
            "optimizers": flight.found.optimizers,
            "left": [key for key in before if before[key] != after[key]],
            "left by cycles": [key for key in before if before[key] != last[key]],
            "names": [k for k in before["names"] if before["names"][k] != last["names"].get(k)]
            + [k for k in last["names"] if k not in before["names"]],
            "files": [f for f in last["files"] if f not in before["files"]],
            "grown": grown,
        },
        default=str,
    )
)
