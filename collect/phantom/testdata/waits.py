"""Runs loops that wait for an unknown truth value. They must end, and their reads must be reported in time."""

import collections
import faulthandler
import json
import signal
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

phantom_values.MANY, phantom_values.AGAIN, phantom_values._PERIOD = 50, 10, 0.0
values = phantom_values.install(torch)
told = []
values.grown = lambda: told.append(sum(values.reads().values()))


def sampled(all_done):
    """Returns the number of steps until each of four sequences has drawn token 3."""
    done, n = torch.zeros(4, dtype=torch.bool, device="cuda"), 0
    while not all_done(done):
        done |= torch.multinomial(torch.rand(4, 50, device="cuda"), 1).squeeze(1) == 3
        n += 1
    return n


waits = [
    sampled(lambda done: bool(done.all())),
    sampled(lambda done: done.cpu().all()),
    sampled(lambda done: done.all().item()),
]
twice = [sampled(lambda done: bool(done.all())) for _ in range(2)]
torch.cuda.mem_get_info(), torch.cuda.get_device_properties(0).total_memory
again = []
for _ in range(2):
    again.append(sampled(torch.Tensor.all))


class Interrupted(collections.Counter):
    """A counter that raises a signal while it counts a read."""

    def __setitem__(self, key, value):
        if self is values._tallies[0]:
            values._tallies = (collections.Counter(self), *values._tallies[1:])
            signal.raise_signal(signal.SIGUSR1)
        super().__setitem__(key, value)


handled = []
signal.signal(signal.SIGUSR1, lambda *_: handled.append(torch.rand((), device="cuda").item()))
values._tallies = (Interrupted(values._tallies[0]), *values._tallies[1:])
faulthandler.dump_traceback_later(30, exit=True)
torch.rand((), device="cuda").item()
faulthandler.cancel_dump_traceback_later()


def late(*_):
    raise TimeoutError


def times(seconds, kind, handler):
    """Returns how often an exception that a signal handler raises reaches a script that reads."""
    caught = 0
    signal.signal(signal.SIGALRM, handler)
    for _ in range(20):
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            for _ in range(3000):
                x.item()
        except kind:
            caught += 1
    return caught


x = torch.rand((), device="cuda")
raised = [
    times(0.003, TimeoutError, late),
    times(0.003, KeyboardInterrupt, signal.default_int_handler),
    times(0.003, SystemExit, lambda *_: sys.exit()),
]
json.dump(
    {
        "handled": len(handled),
        "raised": raised,
        "waits": waits,
        "again": again,
        "twice": twice,
        "floats": [torch.rand((), device="cuda").item() > 0 for _ in range(60)],
        "told": told[:3],
        "notes": values.notes(),
    },
    sys.stdout,
)
