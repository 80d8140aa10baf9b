#!/usr/bin/env python3
"""Predicts each script several times. All its predictions must have equal peaks, or each prediction must announce a
range that contains all these peaks.

    scripts/repeat_predictions.py ./dpsight PYTHON SCRIPT… [--times 10] [--gpus 2]

A script may be given with its arguments as one argument: "oom.py die". Prints a line for each script. Exits 1 if peaks
differ beyond the announced range, or if the peaks differ and a prediction calls itself exact."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

EXACT = "exact expected"


# Matches how a doubt announces that the peak may differ: by a range of peaks, or by how much higher the peak may be.
RANGE = re.compile(r"from ([\d,.]+) MiB.* to ([\d,.]+) MiB")
MORE = re.compile(r"([\d,.]+) MiB more than was predicted")


@dataclass(frozen=True)
class Prediction:
    """The peak, range and confidence that one prediction printed."""

    status: str
    level: str
    peak: float | None = None  # MiB
    low: float = 0.0  # the lowest and the highest peak that the prediction announces
    high: float = 0.0

    def __str__(self) -> str:
        peak = self.status if self.peak is None else f"{self.peak:,.2f} MiB"
        announced = f", {self.low:,.2f} to {self.high:,.2f}" if self.low < self.high else ""
        return f"{peak} ({self.level or 'no confidence'}{announced})"


def predict(dpsight: str, python: str, script: str, gpus: int, store: str) -> Prediction:
    """Runs one prediction, and returns what it printed."""
    options = ["--quiet", "--format", "json", "--store", store]
    options += ["--gpus", str(gpus)] if gpus > 1 else []
    command = [dpsight, "predict", *options, "--", python, *shlex.split(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        return Prediction(f"no answer: {done.stderr.strip().splitlines()[-1]}", "")
    (run,) = json.loads(done.stdout)["runs"]
    confidence = run["confidence"] or {}
    level = confidence.get("level", "")
    if run["peak_bytes"] is None:
        return Prediction(run["status"], level)
    peak = round(run["peak_bytes"] / 2**20, 2)
    ends = [peak]
    for reason in confidence.get("reasons", []):
        if found := RANGE.search(reason):
            ends += map(number, found.groups())
        elif found := MORE.search(reason):
            ends.append(peak + number(found[1]))
    return Prediction(run["status"], level, peak, min(ends), max(ends))


def number(text: str) -> float:
    """Parses a number as dpsight prints it."""
    return float(text.replace(",", ""))


def judged(found: Counter[Prediction]) -> str:
    """Returns whether all predictions of a script have equal peaks, or announce a range that contains all peaks."""
    peaks = {p.peak for p in found}
    if len(peaks) == 1:
        return "equal" if len({p.status for p in found}) == 1 else "WRONG"
    known = [peak for peak in peaks if peak is not None]
    if len(known) < len(peaks) or any(p.level == EXACT for p in found):
        return "WRONG"
    return "ranged" if all(p.low - 0.01 <= peak <= p.high + 0.01 for p in found for peak in known) else "WRONG"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dpsight")
    parser.add_argument("python")
    parser.add_argument("scripts", nargs="+")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--gpus", type=int, default=1, help="devices that each script has")
    args = parser.parse_args()
    wrong = 0
    for script in args.scripts:
        with tempfile.TemporaryDirectory() as store:
            found = Counter(predict(args.dpsight, args.python, script, args.gpus, store) for _ in range(args.times))
        verdict = judged(found)
        wrong += verdict == "WRONG"
        shown = "; ".join(f"{n} × {prediction}" for prediction, n in sorted(found.items(), key=str))
        print(f"{Path(script).name:24} {verdict:9}  {shown}", flush=True)
    print(f"{len(args.scripts)} scripts, each predicted {args.times} times: {wrong} whose peaks differ unannounced")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
