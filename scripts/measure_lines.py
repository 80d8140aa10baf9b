#!/usr/bin/env python3
"""Measures what recording lines costs a prediction: measure_lines.py [--pairs N] DPSIGHT PYTHON SCRIPT…

Predicts each script with lines and with --lines none, in pairs of alternating order. Prints the median over pairs of
the ratio of processor times, with the lowest and the highest ratio. Wall time would include other load on the machine.
The processor time includes the prediction's script, its collector, and making its tables.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile


def cpu(dpsight: str, python: str, script: str, lines: str) -> float:
    """Predicts a script, and returns the processor seconds of all its processes."""
    with tempfile.TemporaryDirectory() as store:
        command = [dpsight, "predict", "--store", store, "--lines", lines, "--", python, *script.split()]
        before = os.times()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        after = os.times()
    if done.returncode not in (0, 1):  # 1: the script does not fit, or it fails without dpsight too
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dpsight")
    parser.add_argument("python")
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT", help="a script, with its arguments in the same word")
    parser.add_argument("--pairs", type=int, default=5)
    o = parser.parse_args()
    print(f"{'Script':28} {'none s':>8} {'lines s':>8} {'ratio':>7} {'least':>7} {'most':>7}")
    medians = []
    for script in o.scripts:
        ratios, seconds = [], []
        for i in range(o.pairs):
            order = ("none", "script") if i % 2 else ("script", "none")
            took = {lines: cpu(o.dpsight, o.python, script, lines) for lines in order}
            seconds.append(took)
            ratios.append(took["script"] / took["none"])
        medians.append(statistics.median(ratios))
        none, lines = (statistics.median(took[how] for took in seconds) for how in ("none", "script"))
        name = os.path.basename(script)
        print(
            f"{name:28} {none:8.2f} {lines:8.2f} {medians[-1]:7.3f} {min(ratios):7.3f} {max(ratios):7.3f}", flush=True
        )
    print(f"{'median of the scripts':46} {statistics.median(medians):7.3f} {min(medians):7.3f} {max(medians):7.3f}")


if __name__ == "__main__":
    main()
