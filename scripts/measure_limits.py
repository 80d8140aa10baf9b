#!/usr/bin/env python3
"""Measures how long it takes to import the installed package and to start the program. Prints the fastest of 100 fresh
processes and their median. Exits 1 if the fastest exceeds a limit: it is the least affected by other load.

  measure_limits.py PYTHON    the interpreter of an environment that dpsight was installed into"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

IMPORT_MS, HELP_MS = 2.0, 30.0
PROCESSES = 100
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
        took = [measure(python) for _ in range(PROCESSES)]
        print(f"{what}: {min(took):.2f} ms (at most {limit:.0f}); median {statistics.median(took):.2f} ms")
        over = over or min(took) > limit
    sys.exit(over)


if __name__ == "__main__":
    main()
