#!/usr/bin/env python3
"""What it costs to import the installed package and to start the program: the median of 20 fresh processes, of the best
of three rounds, since another process may have taken the cores in one. Exits 1 above a limit.

  measure_limits.py PYTHON    the interpreter of an environment that dpsight was installed into"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

IMPORT_MS, HELP_MS = 2.0, 30.0
ROUNDS, PROCESSES = 3, 20
IMPORT = "import time; start = time.perf_counter(); import dpsight; print((time.perf_counter() - start) * 1e3)"


def import_ms(python: str) -> float:
    return float(subprocess.run([python, "-c", IMPORT], check=True, capture_output=True, text=True).stdout)


def help_ms(python: str) -> float:
    start = time.perf_counter()
    subprocess.run([str(Path(python).parent / "dpsight"), "--help"], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    python, over = sys.argv[1], False
    for what, measure, limit in (("import dpsight", import_ms, IMPORT_MS), ("dpsight --help", help_ms, HELP_MS)):
        took = min(statistics.median(measure(python) for _ in range(PROCESSES)) for _ in range(ROUNDS))
        print(f"{what}: {took:.2f} ms (at most {limit:.0f})")
        over = over or took > limit
    sys.exit(over)


if __name__ == "__main__":
    main()
