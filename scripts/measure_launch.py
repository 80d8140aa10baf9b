"""Measures what recording costs if the host sets the pace. On the phantom GPU kernels take no time, so the CPU time of
a step is the time to launch it and to record it. See measure-instrument.sh. With `train` this file is the training
script itself."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXPERIMENTS = Path(__file__).resolve().parent.parent / "collect" / "experiments"
CASES = ("mlp vanilla", "transformer vanilla", "transformer dpsgd", "transformer ghost")
MODES = ("none", "bare", "full")
# The agent's windows, in steps: the warm-up, the first window, where later windows begin, and how long they last.
WARMUP, FIRST, LATER, LASTS = 3, 100, (200, 400, 800), 10
PAIRS, THEN = 10, 32  # an instrumented and a bare step in turns for PAIRS pairs, then one instrumented step in THEN
PHANTOM = ("LD_PRELOAD", "LD_LIBRARY_PATH", "TRITON_LIBCUDA_PATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def train(case: str, steps: int) -> None:
    """Trains, and prints for each step its CPU time in nanoseconds, the CPU time of drains in it, and its number of
    module calls."""
    import torch

    if "MEASURE_PLUGIN" in os.environ:  # without the agent, no other module follows the phantom GPU's values
        sys.path.insert(0, os.environ["MEASURE_PLUGIN"])
        __import__("phantom_values").install(torch)
    sys.path.insert(0, str(EXPERIMENTS))
    model, method = case.split()
    if model == "mlp":
        layers = [m for _ in range(4) for m in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
        net, ids = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).cuda(), torch.zeros(32, dtype=torch.int64)
        x, y = torch.randn(32, 256).cuda(), ids.cuda()
    else:
        from dpsight_experiments.transformer import Transformer

        net = Transformer(vocab_size=8000, dim=512, layers=8, heads=8, seq_len=256).cuda()
        x = y = torch.randint(8000, (8, 256)).cuda()
    counted: list[Any] = []
    with torch.nn.modules.module.register_module_forward_pre_hook(lambda m, a: counted.append(1)):
        net(x)
    optimizer: Any = torch.optim.AdamW(net.parameters())
    net, optimizer, loss = private(torch, net, optimizer, method, len(x))
    drained = watch_drains()
    spent, drains = [], []
    for _ in range(steps):
        began, before = time.process_time_ns(), drained[0]
        optimizer.zero_grad()
        out = net(x)
        loss(out.flatten(0, -2), y.flatten(), **({"shape": out.shape} if method == "ghost" else {})).backward()
        del out
        optimizer.step()
        drains.append(drained[0] - before)
        spent.append(time.process_time_ns() - began - drains[-1])
    print("STEPS " + json.dumps({"ns": spent, "drain_ns": drains, "calls": len(counted)}), flush=True)


def private(torch: Any, net: Any, optimizer: Any, method: str, batch: int) -> tuple[Any, Any, Any]:
    """Returns the model, optimizer and criterion for a method."""
    criterion = torch.nn.CrossEntropyLoss()
    if method == "vanilla":
        return net, optimizer, criterion
    from opacus import grad_sample as g
    from opacus import optimizers as o
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": batch, "loss_reduction": "mean"}
    if method == "dpsgd":
        return g.GradSampleModule(net), o.DPOptimizer(optimizer, **settings), criterion
    net = g.GradSampleModuleFastGradientClipping(net, max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = o.DPOptimizerFastGradientClipping(optimizer, **settings)
    return net, optimizer, DPLossFastGradientClipping(net, optimizer, criterion, "mean")


def watch_drains() -> list[int]:
    """Counts the CPU time of drains, which happen between steps and are reported separately."""
    total = [0]
    recorder = sys.modules.get("dpsight.recorder")
    if recorder is not None:
        drain = recorder.drains.drain

        def timed(reason: str) -> None:
            began = time.process_time_ns()
            drain(reason)
            total[0] += time.process_time_ns() - began

        recorder.drains.drain = timed
    return total


def environment(folder: str) -> None:
    """Writes the environment variables that give a process a phantom GPU and the module that follows its values."""
    import torch

    torch.zeros(1, device="cuda")
    found = {k: v for k, v in os.environ.items() if k in PHANTOM or k.startswith("PHANTOM_")}
    for module in os.environ["DPSIGHT_PLUGIN"].split(os.pathsep):
        shutil.copy(module, folder)
    (Path(folder) / "phantom.json").write_text(json.dumps(found))


def run(options: argparse.Namespace, folder: str, mode: str, case: str) -> dict[str, Any]:
    """Trains once in a separate process."""
    command = [sys.executable, str(Path(__file__).resolve()), "train", "--case", case, "--steps", str(options.steps)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    if mode == "none":
        env |= {**json.loads((Path(folder) / "phantom.json").read_text()), "MEASURE_PLUGIN": folder}
    else:
        command = [*collect(options, folder), *(["--bare"] if mode == "bare" else []), "--", *command]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines() + done.stderr.splitlines():
        if line.startswith("STEPS "):
            return json.loads(line[6:])
    raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-500:]}\n{done.stderr[-2000:]}")


def collect(options: argparse.Namespace, folder: str) -> list[str]:
    return [options.dpsight, "collect", "--store", str(Path(folder) / "store"), "--device", "phantom"]


def has_its_turn(n: int) -> bool:
    """Reports whether the agent instruments the nth step of a window."""
    return n % (2 if n < 2 * PAIRS else THEN) == 0


def kinds(mode: str, ns: list[int]) -> dict[str, float]:
    """Returns the median microseconds of the steps of each kind."""
    windows = {i for w in LATER for i in range(w, w + LASTS)}
    late = [i for i in range(FIRST, len(ns)) if i not in windows]
    first = range(WARMUP + 8, min(FIRST, len(ns)))  # torch and Python have settled by then
    chosen: dict[str, Any] = {"bare": late or first, "all": range(WARMUP, len(ns))}
    if mode == "full":
        chosen["recorded"] = [i for i in first if not has_its_turn(i - WARMUP)]
        chosen["instrumented"] = [i for i in first if has_its_turn(i - WARMUP)]
    out = {k: statistics.median(ns[i] for i in v) / 1e3 for k, v in chosen.items() if k != "all" and v}
    out["all"] = sum(ns[i] for i in chosen["all"]) / len(chosen["all"]) / 1e3
    return out


def compare(options: argparse.Namespace) -> None:
    """Trains in all modes by turns, and prints how much CPU time a step takes in each mode."""
    with tempfile.TemporaryDirectory() as folder:
        told = [sys.executable, str(Path(__file__).resolve()), "environment", "--folder", folder]
        subprocess.run([*collect(options, folder), "--", *told], check=True, capture_output=True)
        for case in options.case or CASES:
            found: dict[str, list[dict[str, float]]] = {m: [] for m in MODES}
            calls = drains = 0.0
            for _ in range(options.turns):
                for mode in MODES:
                    result = run(options, folder, mode, case)
                    found[mode].append(kinds(mode, result["ns"]))
                    calls = result["calls"]
                    if mode == "full":
                        drains = sum(result["drain_ns"]) / sum(result["ns"])
            show(case, options, calls, drains, found)


def show(case: str, options: argparse.Namespace, calls: float, drains: float, found: dict[str, Any]) -> None:
    print(f"{case}: {options.steps} steps, {calls} calls of modules a step, {options.turns} turns; CPU time in µs")
    print(f"{'mode':6} {'steps':13} {'median':>10} {'least':>10} {'cost %':>8} {'a call':>8}")
    base = {k: statistics.median(r[k] for r in found["none"]) for k in ("bare", "all")}
    for mode in MODES:
        for kind in found[mode][0]:
            each = [r[kind] for r in found[mode]]
            mid, beside = statistics.median(each), base["all" if kind == "all" else "bare"]
            cost = 100 * (mid / beside - 1)
            print(f"{mode:6} {kind:13} {mid:10.1f} {min(each):10.1f} {cost:8.2f} {(mid - beside) / calls:8.2f}")
    print(f"drains, which are in no step: {100 * drains:.1f} % of the CPU time of a full run's steps\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["launch", "train", "environment"])
    parser.add_argument("--dpsight", default="./dpsight")
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--store", help="accepted and not used, since runs without times are not kept")
    parser.add_argument("--folder", default="")
    options = parser.parse_args()
    options.turns = options.turns or 5
    if options.part == "train":
        train(options.case[0], options.steps)
    elif options.part == "environment":
        environment(options.folder)
    else:
        compare(options)


if __name__ == "__main__":
    main()
