#!/usr/bin/env python3
"""Measures what dpsight.attach() costs: in an idle process, and in two trainings with steps of about 10 ms, one paced
by the device and one by the host. In one process, each training alternates blocks of steps without and with the
recorder. The two blocks of a pair run one after the other, so that other load on the machine affects both.

  measure_attach.py [--pairs 8] [--steps 300] [--idle 4] [--json FILE]

It needs torch, and the package dpsight: the installed one, or collect/agent/python on PYTHONPATH. The phantom GPU has
no times, so there the script measures the host's time."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpsight
import torch

TARGET_MS = 10.0
FIRST = 50  # the number of first steps, mostly instrumented, which are counted separately
MIB = 1 << 20


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def training(layers: int, width: int, batch: int) -> Callable[[], None]:
    """Returns a function that trains a perceptron with AdamW for one step."""
    blocks = [module for _ in range(layers) for module in (torch.nn.Linear(width, width), torch.nn.GELU())]
    net = torch.nn.Sequential(*blocks).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    data = torch.randn(batch, width, device="cuda")

    def step() -> None:
        net(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def times(step: Callable[[], None], steps: int) -> list[float]:
    """Returns each step's time in ms. Each step waits for the device, as a training does that logs its loss."""
    out = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        out.append((time.perf_counter() - begin) * 1e3)
    return out


def paced_by_host() -> tuple[Callable[[], None], str]:
    """Returns a training of small layers, as many as make a step take 10 ms, and its description."""
    layers = 4
    for _ in range(8):
        step = training(layers, 256, 1)
        took = statistics.median(times(step, 12)[4:])
        if 0.8 * TARGET_MS < took < 1.25 * TARGET_MS:
            break
        layers = max(1, round(layers * TARGET_MS / took))
    return step, f"{layers} layers, 256 wide, batch 1"


def paced_by_device() -> tuple[Callable[[], None], str]:
    """Returns a training of few layers, with a batch that makes a step take 10 ms, and its description."""
    batch = 256
    for _ in range(12):
        step = training(6, 2048, batch)
        took = statistics.median(times(step, 12)[4:])
        if 0.8 * TARGET_MS < took < 1.25 * TARGET_MS:
            break
        batch = max(1, min(1 << 17, round(batch * min(8.0, TARGET_MS / took))))
    return step, f"6 layers, 2,048 wide, batch {batch:,}"


def spread(values: list[float], unit: str) -> str:
    return f"{statistics.median(values):+.2f} {unit} ({min(values):+.2f} to {max(values):+.2f}, n = {len(values)})"


def pairs(step: Callable[[], None], count: int, steps: int, store: str) -> dict[str, Any]:
    """Trains pairs of blocks, without and with the recorder. Returns by how much longer the recorded blocks are."""
    plain, whole, later, first = [], [], [], []
    attach_s, detach_s, memory, journal = [], [], [], []
    times(step, 20)
    for _ in range(count):
        without = statistics.fmean(times(step, steps)[FIRST:])
        before, begin = resident(), time.perf_counter()
        flight = dpsight.attach(store)
        attach_s.append(time.perf_counter() - begin)
        took = times(step, steps)
        memory.append((resident() - before) / MIB)
        journal.append(flight.journal_bytes() / MIB)
        begin = time.perf_counter()
        dpsight.detach()
        detach_s.append(time.perf_counter() - begin)
        plain.append(without)
        whole.append(100 * (statistics.fmean(took) / without - 1))
        first.append(100 * (statistics.fmean(took[:FIRST]) / without - 1))
        later.append(100 * (statistics.fmean(took[FIRST:]) / without - 1))
    return {
        "step_ms": plain,
        "percent_all": whole,
        "percent_first": first,
        "percent_later": later,
        "attach_s": attach_s,
        "detach_s": detach_s,
        "resident_mib": memory,
        "journal_mib": journal,
    }


def work() -> float:
    """Runs about a second of Python code that does not use torch. Returns the seconds it took."""
    begin = time.perf_counter()
    total = 0
    for i in range(6_000_000):
        total += i & 7
    return time.perf_counter() - begin


def idle(count: int, seconds: float, store: str) -> dict[str, Any]:
    """Measures what a recorder costs a process that does not use the device: its share of a core while the process
    sleeps, and how much longer the process's own work takes."""

    def asleep() -> float:
        begin = time.process_time()
        time.sleep(seconds)
        return 100 * (time.process_time() - begin) / seconds

    cores, loops = [], []
    for _ in range(count):
        slept, worked = asleep(), work()
        dpsight.attach(store)
        cores.append(asleep() - slept)
        loops.append(100 * (work() / worked - 1))
        dpsight.detach()
    return {"percent_of_a_core_asleep": cores, "percent_longer_at_work": loops}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=300, help=f"steps in a block; more than {2 * FIRST}")
    parser.add_argument("--idle", type=float, default=4.0, help="seconds that an idle block sleeps")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    arguments = parser.parse_args()
    if arguments.pairs < 1 or arguments.steps <= 2 * FIRST or arguments.idle <= 0:
        parser.error(f"a pair or more, blocks of more than {2 * FIRST} steps, and some sleep")
    properties = torch.cuda.get_device_properties(0)
    figures: dict[str, Any] = {
        "device": properties.name,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "pairs": arguments.pairs,
        "steps": arguments.steps,
    }
    versions = f"torch {torch.__version__}, Python {figures['python']}"
    print(f"{properties.name}, {versions}, {arguments.pairs} pairs", flush=True)
    with tempfile.TemporaryDirectory() as store:
        figures["idle"] = found = idle(arguments.pairs, arguments.idle, store)
        print(f"idle, asleep: {spread(found['percent_of_a_core_asleep'], '% of a core')}")
        print(f"idle, at work in Python: {spread(found['percent_longer_at_work'], '%')}", flush=True)
        for kind, make in (("the device paces", paced_by_device), ("the host paces", paced_by_host)):
            step, what = make()
            figures[kind] = found = {"what": what, **pairs(step, arguments.pairs, arguments.steps, store)}
            print(f"{kind} ({what}; {statistics.median(found['step_ms']):.2f} ms a step without)")
            print(f"  all steps: {spread(found['percent_all'], '%')}")
            print(f"  the first {FIRST}: {spread(found['percent_first'], '%')}")
            print(f"  after them: {spread(found['percent_later'], '%')}")
            print(f"  attach {statistics.median(found['attach_s']) * 1e3:.0f} ms, ", end="")
            print(f"detach {statistics.median(found['detach_s']) * 1e3:.0f} ms")
            print(f"  host memory: {spread(found['resident_mib'], 'MiB')}, ", end="")
            print(f"journal {max(found['journal_mib']):.1f} MiB at most", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
