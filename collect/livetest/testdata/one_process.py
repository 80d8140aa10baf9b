"""Runs methods one after another in one process, as profiling scripts do: one_process.py collect|drop METHOD...

Between two methods it drops the model and the optimizer, empties the cache and resets the peak. With collect, it also
collects reference cycles. Prints, as JSON, the allocated bytes when each method began, and its peak.
"""

from __future__ import annotations

import gc
import json
import sys

import torch
from dpsight_experiments.data import data_loader
from dpsight_experiments.loop import train_step
from dpsight_experiments.methods import prepare
from dpsight_experiments.models import make_model
from dpsight_experiments.options import Options, resolve


def run(options: Options) -> None:
    device = torch.device("cuda")
    torch.manual_seed(options.seed)
    loader = data_loader(options)
    training = prepare(options, make_model(options, device), loader)
    for _ in range(2):
        for inputs, targets in loader:
            train_step(training, options, inputs, targets, device)
    torch.cuda.synchronize()


def main(collect: bool, methods: list[str]) -> None:
    found = []
    for method in methods:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run(resolve({"method": method, "preset": "tiny", "batch_size": "4"}))
        found.append({"method": method, "before": before, "peak": torch.cuda.max_memory_allocated()})
        if collect:
            gc.collect()
        torch.cuda.empty_cache()
    print(json.dumps(found))


main(sys.argv[1] == "collect", sys.argv[2:])
