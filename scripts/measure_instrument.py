"""What the instrument costs: one training script, by turns without dpsight, bare, and recorded as by default. See
measure-instrument.sh. With `train` it is that script itself."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EXPERIMENTS = Path(__file__).resolve().parent.parent / "collect" / "experiments"
# Steps are timed in blocks between two synchronisations: one a step would hide what the host's queue hides. Blocks with
# recorded steps in them are left out of what bare steps cost.
BLOCK = 50
RECORDED = 100
DUE = (200, 400, 800, 1600, 3200)
MODES = ("none", "bare", "full")


def train(options: argparse.Namespace) -> None:
    """Trains, and prints the wall time of each block as JSON. Knows nothing of dpsight."""
    sys.path.insert(0, str(EXPERIMENTS))
    import torch
    from dpsight_experiments.transformer import Transformer

    device = torch.device(options.on)
    torch.manual_seed(0)
    vocabulary, length = options.vocabulary, options.length
    model = Transformer(
        vocab_size=vocabulary, dim=options.hidden, layers=options.layers, heads=options.heads, seq_len=length
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(vocabulary, (options.batch, length), device=device)

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    blocks = []
    wait()
    for begin in range(0, options.steps, options.block):
        n = min(options.block, options.steps - begin)
        started = time.perf_counter()
        for _ in range(n):
            optimizer.zero_grad()
            logits = model(ids)
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
            del logits
            optimizer.step()
        wait()
        blocks.append({"begin": begin, "steps": n, "ms": (time.perf_counter() - started) * 1e3})
    print("BLOCKS " + json.dumps(blocks), flush=True)


def run(options: argparse.Namespace, mode: str, batch: int, turn: int) -> list[dict[str, Any]]:
    """Trains once in a process of its own; gives its blocks."""
    phantom = options.device == "phantom"  # to try this script out: its times mean nothing
    command = [sys.executable, str(Path(__file__).resolve()), "train", "--batch", str(batch)]
    for name in ("steps", "hidden", "layers", "heads", "length", "vocabulary", "block"):
        command += [f"--{name}", str(getattr(options, name))]
    command += ["--on", "cpu" if phantom and mode == "none" else "cuda"]
    if mode != "none":
        collect = [options.dpsight, "collect", "--store", options.store, "--name", f"{mode}-{turn}"]
        command = [*collect, "--device", options.device, *(["--bare"] if mode == "bare" else []), "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines() + done.stderr.splitlines():
        if line.startswith("BLOCKS "):
            return json.loads(line[7:])
    raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")


def per_step(blocks: list[dict[str, Any]], bare_only: bool) -> float:
    """Milliseconds a step: the median block of those that hold no recorded step, or the mean of all but the first."""
    kept = blocks[1:] or blocks
    if not bare_only:
        return sum(b["ms"] for b in kept) / sum(b["steps"] for b in kept)

    def holds(b: dict[str, Any]) -> bool:
        return b["begin"] < RECORDED or any(b["begin"] <= d < b["begin"] + b["steps"] for d in DUE)

    kept = [b for b in kept if not holds(b)] or kept
    return statistics.median(b["ms"] / b["steps"] for b in kept)


def calibrated(options: argparse.Namespace) -> int:
    """The batch with which a step takes about 10 ms. Halves the layers of a model whose smallest batch takes longer."""
    batch = options.batch
    if not options.target_ms:
        return batch
    for _ in range(10):
        probe = argparse.Namespace(**{**vars(options), "steps": 3 * options.block})
        ms = per_step(run(probe, "none", batch, 0), bare_only=False)
        if 0.93 < ms / options.target_ms < 1.07:
            break
        wanted = max(1, round(batch * options.target_ms / ms))
        if wanted == batch == 1 and ms > options.target_ms and options.layers > 1:
            options.layers //= 2
        elif wanted == batch:
            break
        batch = wanted
    return batch


def compare(options: argparse.Namespace) -> None:
    """Runs all modes by turns and prints what each costs."""
    batch = calibrated(options)
    found: dict[str, list[tuple[float, float]]] = {m: [] for m in MODES}
    for turn in range(options.turns):
        for mode in MODES:
            blocks = run(options, mode, batch, turn)
            found[mode].append((per_step(blocks, bare_only=True), per_step(blocks, bare_only=False)))
            print(f"turn {turn}, {mode}: {found[mode][-1][0]:.3f}, all {found[mode][-1][1]:.3f} ms a step", flush=True)
    what = f"{options.layers} layers, batch {batch}, {options.steps} steps, {options.turns} turns"
    print(f"{what}; medians, and the range of the turns")
    print(f"{'mode':6} {'bare step ms':>13} {'range':>19} {'cost %':>8} {'all steps ms':>13} {'cost %':>8}")
    base = [statistics.median(v) for v in zip(*found["none"], strict=True)]
    for mode in MODES:
        steps, everything = ([v[i] for v in found[mode]] for i in (0, 1))
        mid, whole = statistics.median(steps), statistics.median(everything)
        span = f"{min(steps):.3f}–{max(steps):.3f}"
        cost, total = 100 * (mid / base[0] - 1), 100 * (whole / base[1] - 1)
        print(f"{mode:6} {mid:13.3f} {span:>19} {cost:8.2f} {whole:13.3f} {total:8.2f}")
    print("bare steps: blocks without a recorded step; all steps: every block but the first, drains included")
    print(f"\ndpsight analyze cost {options.store}", flush=True)
    subprocess.run([options.dpsight, "analyze", "cost", options.store], check=True)
    print(f"\ndpsight analyze time full-0 --store {options.store} --fold", flush=True)
    subprocess.run([options.dpsight, "analyze", "time", "full-0", "--store", options.store, "--fold"], check=True)


def events() -> None:
    """What NVML says is in use before and after thousands of CUDA events were made and recorded."""
    import torch

    torch.zeros(1, device="cuda")
    made, free = [], [torch.cuda.mem_get_info()[0]]
    for _ in range(4):
        for _ in range(5000):
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            made.append(event)
        torch.cuda.synchronize()
        free.append(torch.cuda.mem_get_info()[0])
    for i, bytes_free in enumerate(free):
        print(f"{5000 * i:6} events: {bytes_free - free[0]:+d} bytes free, {torch.cuda.memory_allocated()} allocated")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["train", "steps", "headline", "events"])
    parser.add_argument("--dpsight", default="./dpsight")
    parser.add_argument("--store", default="runs")
    parser.add_argument("--device", choices=["cuda", "phantom"], default="cuda")
    parser.add_argument("--on", default="cuda")
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--block", type=int, default=BLOCK)
    parser.add_argument("--target-ms", type=float, default=None)
    sizes = ("steps", "batch", "hidden", "layers", "heads", "length", "vocabulary")
    for name in sizes:
        parser.add_argument(f"--{name}", type=int, default=0)
    options = parser.parse_args()
    # Eight blocks of 80 calls of modules: at 10 ms the host's work shows.
    small = {"steps": 1000, "batch": 8, "hidden": 512, "layers": 8, "heads": 8, "length": 256, "vocabulary": 8000}
    large = {"steps": 12, "batch": 1, "hidden": 2048, "layers": 20, "heads": 16, "length": 16384, "vocabulary": 32000}
    for name in sizes:
        if not getattr(options, name):
            setattr(options, name, (large if options.part == "headline" else small)[name])
    options.turns = options.turns or (2 if options.part == "headline" else 5)
    if options.part == "headline":
        options.block, options.target_ms = 2, 0.0
    elif options.target_ms is None:
        options.target_ms = 10.0
    if options.part == "train":
        train(options)
    elif options.part == "events":
        events()
    else:
        compare(options)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
