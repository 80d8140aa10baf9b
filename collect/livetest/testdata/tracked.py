"""Trains a built-in experiment under torch's own MemTracker: tracked.py FOLDER FLAG….

FOLDER contains dpsight_experiments, and the flags are an experiment's options. When a backward begins, it prints one
line of JSON with each storage that MemTracker finds alive: its kind, its bytes, and the operator that made it.
"""

import json
import sys

import torch
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils._pytree import tree_leaves

sys.path.insert(0, sys.argv[1])

from dpsight_experiments import _agent  # noqa: E402
from dpsight_experiments.data import data_loader  # noqa: E402
from dpsight_experiments.loop import train  # noqa: E402
from dpsight_experiments.methods import prepare  # noqa: E402
from dpsight_experiments.models import make_model  # noqa: E402
from dpsight_experiments.options import parse  # noqa: E402


class Tracker(MemTracker):
    """Remembers which operator in which module made each storage. MemTracker itself knows only the size."""

    def __init__(self):
        super().__init__()
        self.origin = {}  # address → operator, module, shape

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs or {})
        given = {address(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        module = max(self._mod_tracker.parents, key=len)
        for t in tree_leaves(result):
            if isinstance(t, torch.Tensor) and address(t) not in given:
                self.origin[address(t)] = f"{func} in {module}, {list(t.shape)} {t.dtype}"
        return result

    def report(self):
        """Prints MemTracker's kind, the bytes and the origin of each storage that is alive on the device."""
        alive = [
            [info.reftype.value, info.mem_consumed, self.origin.get(storage.data_ptr(), "made outside")]
            for storage, (info, _) in self._WINFO.items()
            if info.device.type == "cuda" and info.mem_consumed
        ]
        total = sum(n["Total"] for device, n in self.get_tracker_snapshot().items() if device.type == "cuda")
        print("TRACKED " + json.dumps({"total": total, "storages": alive}), flush=True)


def address(tensor):
    return tensor.untyped_storage().data_ptr()


def main():
    options, _ = parse(sys.argv[2:])
    device = torch.device("cuda")
    torch.manual_seed(options.seed)
    loader = data_loader(options)
    training = prepare(options, make_model(options, device), loader)
    tracker = Tracker()
    tracker.track_external(training.model)
    run = torch.autograd._engine_run_backward  # the root's gradient exists then, as when dpsight marks backward's begin

    def reported(*args, **kwargs):
        tracker.report()
        return run(*args, **kwargs)

    torch.autograd._engine_run_backward = reported
    _agent.step = lambda **_: tracker.reset_mod_stats()  # otherwise MemTracker refuses the second step's forward
    with tracker:
        train(training, options, device)


main()
