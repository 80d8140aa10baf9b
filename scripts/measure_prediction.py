"""Measures what predictions cost, on a machine without a GPU: measure_prediction.py [--untimed] DPSIGHT PYTHON
[ROW…].

Prints wall time, CPU time and the highest resident memory of a model of 7 B parameters, for each way of drawing
its weights, and of the headline suite with two jobs. Fails if a limit is exceeded. Limits on time apply to CPU
time by processor, which equals wall time on a quiet machine. With --untimed, times are printed but not checked,
for machines of unknown speed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LLAMA = str(Path(__file__).with_name("llama7b.py"))

# Each row: name, command, number of processors, and the limits in seconds and MB.
ROWS = [
    (f"7 B, {how}, {dtype}", ["--", "PYTHON", LLAMA, how, dtype], 1, 10.0, 1000)
    for how, dtype in (
        ("host", "float32"),
        ("host", "bfloat16"),
        ("cast", "bfloat16"),
        ("device", "float32"),
        ("device", "bfloat16"),
    )
] + [("headline, all methods", ["--suite", "headline", "--jobs", "2"], 2, 60.0, None)]


def measure(dpsight: str, python: str, command: list[str]) -> tuple[float, float, float]:
    """Runs a command. Returns its wall seconds, the seconds of all processors, and the MB of its largest process."""
    command = [python if word == "PYTHON" else word for word in command]
    with tempfile.TemporaryDirectory() as store:
        began = time.monotonic()
        process = subprocess.Popen(
            [dpsight, "collect", "--device", "phantom", "--store", store, *command],
            env={**os.environ, "DPSIGHT_PYTHON": python},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr
        said = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(said)
        return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main() -> int:
    words = sys.argv[1:]
    if untimed := words[0] == "--untimed":
        words.pop(0)
    dpsight, python, wanted = words[0], words[1], words[2:]
    over = 0
    print(f"{'':24} {'wall s':>8} {'CPU s':>8} {'RSS MB':>8}")
    for name, command, processors, seconds, megabytes in ROWS:
        if wanted and not any(word in name for word in wanted):
            continue
        wall, cpu, rss = measure(dpsight, python, command)
        missed = (not untimed and cpu / processors > seconds) or (megabytes is not None and rss > megabytes)
        over += missed
        print(f"{name:24} {wall:8.1f} {cpu:8.1f} {rss:8.0f}{'  over the limit' if missed else ''}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
