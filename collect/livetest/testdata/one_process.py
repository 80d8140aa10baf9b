"""Runs methods one after another in one process, as profiling scripts do: one_process.py collect|drop METHOD...

Between two of them the model and the optimizer are dropped, the cache is emptied and the peak is reset; with collect,
reference cycles are collected too. Prints, as JSON, what each method found allocated and its own peak.
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
