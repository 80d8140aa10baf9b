#!/usr/bin/env python3
"""Times dpsight's import of a memory snapshot, Python's pickle.load of the same file, and then breakdown and timeline.

    scripts/measure_snapshot.py ./dpsight [SNAPSHOT.pickle] [--events 1000000] [--rounds 3] [--without-python]

Without a file it makes a snapshot with --events events, with stacks of 35 frames (250 bytes an event). Each round runs
four things, each in its own process: pickle.load as a script calls it; pickle.load with the garbage collector off;
dpsight ingest into an empty store, which ends with complete tables; then breakdown and timeline of that run. Wall times
are what a user waits for. CPU times vary less under other load. The last lines say how many times faster the import was
than pickle.load: the median of the rounds, the lowest and the highest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAKER = Path(__file__).resolve().parent.parent / "ingest/testdata/tools/make_snapshot.py"
LOAD = "import gc, pickle, sys\nif sys.argv[2] == 'off': gc.disable()\npickle.load(open(sys.argv[1], 'rb'))"
INGEST = "dpsight ingest"


def run(command: list[str]) -> tuple[float, float, float]:
    """Runs a command, and returns the wall seconds, CPU seconds and highest MiB of its process."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    if status != 0:
        sys.exit(f"{command[0]} failed: {' '.join(command)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):6.2f}  {min(values):6.2f}  {max(values):6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dpsight")
    parser.add_argument("snapshot", nargs="?")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-python", action="store_true", help="leave out pickle.load, which may take many GB")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = o.snapshot
        if path is None:
            path = f"{folder}/snapshot.pickle"
            subprocess.run([sys.executable, MAKER, str(o.events), path, "35"], check=True, stdout=subprocess.DEVNULL)
        print(
            f"{os.path.getsize(path) / 1e6:.0f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
            f"Python {sys.version.split()[0]}"
        )
        print(f"{'':24}  wall s   CPU s     MiB")
        found: dict[str, list[tuple[float, float, float]]] = {}
        for turn in range(o.rounds):
            store = f"{folder}/store{turn}"
            commands = {
                "pickle.load": [sys.executable, "-c", LOAD, path, "on"],
                "pickle.load, gc off": [sys.executable, "-c", LOAD, path, "off"],
                INGEST: [o.dpsight, "ingest", path, "--store", store],
                "dpsight breakdown": [o.dpsight, "breakdown", "--store", store],
                "dpsight timeline": [o.dpsight, "timeline", "--store", store],
            }
            for name, command in commands.items():
                if o.without_python and command[0] == sys.executable:
                    continue
                wall, cpu, memory = run(command)
                found.setdefault(name, []).append((wall, cpu, memory))
                print(f"{name:24}  {wall:6.2f}  {cpu:6.2f}  {memory:6.0f}", flush=True)
        if not o.without_python:
            print(f"{'times faster':24}  median   least    most")
        for name, turns in found.items():
            if name.startswith("pickle"):
                for what, at in (("wall", 0), ("CPU", 1)):
                    ratios = [turn[at] / ours[at] for turn, ours in zip(turns, found[INGEST], strict=True)]
                    print(f"{name + ', ' + what:24}  {spread(ratios)}", flush=True)


if __name__ == "__main__":
    main()
