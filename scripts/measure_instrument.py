"""Measures what recording costs: one training script without dpsight, bare, and recorded with the defaults. See
measure-instrument.sh. With `train` this file is that script itself.

The three processes of `steps` and `busy` live at the same time and train by turns, a block of steps each, so that a
slower period of the host affects all of them. On shared hosts, processes that ran one after the other differed by up to
40 %, which hides a difference of 5 %. All three use the same two processors: a processor's other load can make it
slower than another for a whole run. Each process waits two thirds of the time, so the recorded one drains more often
than it would alone. The load of the two collectors, which query NVML, affects all three."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXPERIMENTS = Path(__file__).resolve().parent.parent / "collect" / "experiments"
# Steps are timed in blocks, and the script synchronises with the device only at the ends of a block. A synchronisation
# at each step would add waits that the host's queue of kernels normally avoids. Blocks with recorded steps do not count
# in the time of bare steps.
BLOCK = 50
RECORDED = 100
DUE = (200, 400, 800, 1600, 3200)
MODES = ("none", "bare", "full")


def train(options: argparse.Namespace) -> None:
    """Trains without using dpsight, and prints the wall time of each block as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, processors())  # before torch starts threads, which inherit it
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
    turns = open(options.turnstile, "rb", buffering=0) if options.turnstile else None  # noqa: SIM115
    over = Path(options.turnstile).parent / "ended" if options.turnstile else None
    ended = open(over, "wb", buffering=0) if over else None  # noqa: SIM115
    if ended:
        ended.write(b".")
    for begin in range(0, options.steps, options.block):
        if turns and not turns.read(1):
            raise SystemExit("no turn came")
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
        if ended:
            ended.write(b".")
    if turns:
        turns.read(1)  # ending a process is work too, so it waits for the others' last blocks
    print("BLOCKS " + json.dumps(blocks), flush=True)


def processors() -> set[int]:
    """Returns two of the processors that this process may use: one for the thread that trains, and one for autograd's
    thread. The second and the last processor belong to different cores, however the system numbers them."""
    allowed = sorted(os.sched_getaffinity(0))
    return {allowed[min(1, len(allowed) - 1)], allowed[-1]}


def command_of(options: argparse.Namespace, mode: str, turn: int, turnstile: str = "") -> list[str]:
    """Returns the command that trains once in a mode."""
    phantom = options.device == "phantom"  # only to try this script: times on the phantom GPU mean nothing
    command = [sys.executable, str(Path(__file__).resolve()), "train", "--batch", str(options.batch)]
    for name in ("steps", "hidden", "layers", "heads", "length", "vocabulary", "block"):
        command += [f"--{name}", str(getattr(options, name))]
    command += ["--on", "cpu" if phantom and mode == "none" else "cuda", "--turnstile", turnstile]
    if mode != "none":
        collect = [options.dpsight, "collect", "--store", options.store, "--name", f"{mode}-{turn}"]
        command = [*collect, "--device", options.device, *(["--bare"] if mode == "bare" else []), "--", *command]
    return command


def blocks_of(command: list[str], code: int, out: str) -> list[dict[str, Any]]:
    """Returns the blocks that a training printed after it ended."""
    for line in out.splitlines():
        if line.startswith("BLOCKS "):
            return json.loads(line[7:])
    raise SystemExit(f"{' '.join(command)} ended with {code}:\n{out[-3000:]}")


def run(options: argparse.Namespace, mode: str, turn: int) -> list[dict[str, Any]]:
    """Trains once in a separate process, and returns the blocks of this training."""
    command = command_of(options, mode, turn)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return blocks_of(command, done.returncode, done.stdout)


def together(options: argparse.Namespace, turn: int) -> dict[str, list[dict[str, Any]]]:
    """Trains in each mode, in separate processes that take turns block by block. Returns the blocks by mode."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name in (*MODES, "ended"):
            os.mkfifo(Path(folder, name))
        running = {}
        for mode in MODES:
            command = command_of(options, mode, turn, str(Path(folder, mode)))
            out = stack.enter_context(open(Path(folder, mode + ".log"), "wb"))
            running[mode] = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            stack.callback(running[mode].kill)
        gates = {m: os.open(Path(folder, m), os.O_RDWR) for m in MODES}
        # The measuring process opens the pipe for writing too, or else it would read the pipe's end before another
        # process has opened the pipe.
        ended = os.open(Path(folder, "ended"), os.O_RDWR)

        def until_ended() -> None:
            while not select.select([ended], [], [], 1)[0]:
                for mode, process in running.items():
                    if process.poll() is not None:
                        raise SystemExit(f"{mode} ended early:\n{Path(folder, mode + '.log').read_text()[-3000:]}")
            os.read(ended, 1)

        for _ in MODES:  # wait until each process has made its model
            until_ended()
        for i, _ in enumerate(range(0, options.steps, options.block)):
            for m in MODES[i % len(MODES) :] + MODES[: i % len(MODES)]:
                os.write(gates[m], b".")
                until_ended()
        for m in MODES:
            os.write(gates[m], b".")
        codes = {m: p.wait() for m, p in running.items()}
        return {m: blocks_of([m], c, Path(folder, m + ".log").read_text()) for m, c in codes.items()}


def bare(blocks: list[dict[str, Any]]) -> list[float]:
    """Returns the milliseconds per step of each block without a recorded step. The first and the last block are left
    out."""
    kept = blocks[1:-1] or blocks

    def holds(b: dict[str, Any]) -> bool:
        return b["begin"] < RECORDED or any(b["begin"] <= d < b["begin"] + b["steps"] for d in DUE)

    return [b["ms"] / b["steps"] for b in ([b for b in kept if not holds(b)] or kept)]


def per_step(blocks: list[dict[str, Any]], bare_only: bool) -> float:
    """Returns milliseconds per step: the median of the blocks without a recorded step, or the mean of all blocks except
    the first and the last."""
    kept = blocks[1:-1] or blocks
    return statistics.median(bare(blocks)) if bare_only else sum(b["ms"] for b in kept) / sum(b["steps"] for b in kept)


def costs(ours: list[dict[str, Any]], none: list[dict[str, Any]]) -> tuple[float, float]:
    """Returns by how many per cent bare steps, and all steps, are longer than without dpsight. For bare steps it
    compares blocks of the same steps. In all parts except headline, the processes trained these blocks in turns."""
    bares = statistics.median(a / b - 1 for a, b in zip(bare(ours), bare(none), strict=True))
    return 100 * bares, 100 * (per_step(ours, bare_only=False) / per_step(none, bare_only=False) - 1)


def drained(options: argparse.Namespace) -> dict[str, float]:
    """Returns the milliseconds of drains by run name."""
    command = [options.dpsight, "analyze", "cost", options.store, "--format", "json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {r["name"]: r["drain_ms"] or 0.0 for r in found["runs"]}


def calibrate(options: argparse.Namespace) -> None:
    """Sets the batch size so that a step takes about 10 ms. If the host sets the pace, it sets the number of layers
    instead."""
    by = "layers" if options.part == "steps" else "batch"
    for _ in range(10 if options.target_ms else 0):
        probe = argparse.Namespace(**{**vars(options), "steps": 8 * options.block})
        ms = per_step(run(probe, "none", 0), bare_only=False)
        wanted = max(1, round(getattr(options, by) * options.target_ms / ms))
        if 0.93 < ms / options.target_ms < 1.07 or wanted == getattr(options, by):
            break
        setattr(options, by, wanted)


def compare(options: argparse.Namespace) -> None:
    """Trains in all modes, and prints how much longer bare steps and all steps are in each mode."""
    calibrate(options)
    found: dict[str, list[tuple[float, float]]] = {m: [] for m in MODES}
    every: dict[str, list[list[dict[str, Any]]]] = {m: [] for m in MODES}
    for turn in range(options.turns):
        all_modes = together(options, turn) if options.part != "headline" else {}
        for mode in MODES:
            blocks = all_modes.get(mode) or run(options, mode, turn)
            every[mode].append(blocks)
            found[mode].append((per_step(blocks, bare_only=True), per_step(blocks, bare_only=False)))
            print(f"turn {turn}, {mode}: {found[mode][-1][0]:.3f}, all {found[mode][-1][1]:.3f} ms a step", flush=True)
    drains = drained(options)
    what = f"{options.layers} layers, batch {options.batch}, {options.steps} steps, {options.turns} turns"
    print(f"{what}; medians of the turns, and the range of what they cost")
    columns = (
        f"{'bare step':>10} {'cost %':>7} {'range':>15} {'all steps':>10} {'cost %':>7} {'range':>15} {'drains %':>8}"
    )
    print(f"{'mode':6} {columns}")
    for mode in MODES:
        figures, drained_share = [], []
        for turn, taken in enumerate(found[mode]):
            dearer = costs(every[mode][turn], every["none"][turn])
            figures.append((taken[0], dearer[0], taken[1], dearer[1]))
            drained_share.append(100 * drains.get(f"{mode}-{turn}", 0.0) / sum(b["ms"] for b in every[mode][turn]))
        step, cost, whole, total = (statistics.median(v) for v in zip(*figures, strict=True))
        span, spans = (f"{min(f[i] for f in figures):.2f} to {max(f[i] for f in figures):.2f}" for i in (1, 3))
        share = statistics.median(drained_share)
        print(f"{mode:6} {step:10.3f} {cost:7.2f} {span:>15} {whole:10.3f} {total:7.2f} {spans:>15} {share:8.2f}")
    print("bare step: ms, the median block of those without a recorded step; its cost: the median of blocks beside")
    print("those of the same steps without dpsight; all steps: ms, of all blocks but the first and the last, drains")
    print("included; drains: of the run, as a part of all blocks")
    print(f"\ndpsight analyze cost {options.store}", flush=True)
    subprocess.run([options.dpsight, "analyze", "cost", options.store], check=True)
    print(f"\ndpsight analyze time full-0 --store {options.store} --fold", flush=True)
    subprocess.run([options.dpsight, "analyze", "time", "full-0", "--store", options.store, "--fold"], check=True)


def events() -> None:
    """Prints the device memory that NVML says is in use before and after thousands of CUDA events were made and
    recorded."""
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
    parser.add_argument("part", choices=["train", "steps", "busy", "headline", "events"])
    parser.add_argument("--dpsight", default="./dpsight")
    parser.add_argument("--store", default="runs")
    parser.add_argument("--device", choices=["cuda", "phantom"], default="cuda")
    parser.add_argument("--on", default="cuda")
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--block", type=int, default=BLOCK)
    parser.add_argument("--turnstile", default="")
    parser.add_argument("--target-ms", type=float, default=None)
    sizes = ("steps", "batch", "hidden", "layers", "heads", "length", "vocabulary")
    for name in sizes:
        parser.add_argument(f"--{name}", type=int, default=0)
    options = parser.parse_args()
    # The batch is so small that the device waits for the host.
    small = {"steps": 3000, "batch": 1, "hidden": 512, "layers": 8, "heads": 8, "length": 256, "vocabulary": 8000}
    # The layers are few and large: the host is busy for about half of the time that the device works.
    busy = {**small, "batch": 10, "hidden": 1024, "layers": 3, "heads": 16, "length": 128}
    large = {"steps": 12, "batch": 1, "hidden": 2048, "layers": 20, "heads": 16, "length": 16384, "vocabulary": 32000}
    for name in sizes:
        if not getattr(options, name):
            setattr(options, name, {"headline": large, "busy": busy}.get(options.part, small)[name])
    options.turns = options.turns or 2
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
