#!/usr/bin/env python3
"""Predicts each script several times: its peaks are equal, or none of its predictions is called exact.

    scripts/repeat_predictions.py ./dpsight PYTHON SCRIPT… [--times 10]

Prints a line a script, and exits 1 where peaks differ and a prediction that differs is called exact."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

EXACT = "exact expected"


def predict(dpsight: str, python: str, script: Path, store: str) -> tuple[str, str]:
    """The peaks of one prediction, as text, and its confidence."""
    command = [dpsight, "predict", "--quiet", "--format", "json", "--store", store, "--", python, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        return f"no answer: {done.stderr.strip().splitlines()[-1]}", ""
    (run,) = json.loads(done.stdout)["runs"]
    peak = run["peak_bytes"]
    level = (run["confidence"] or {}).get("level", "")
    return run["status"] if peak is None else f"{peak / 2**20:,.2f} MiB", level


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dpsight")
    parser.add_argument("python")
    parser.add_argument("scripts", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=10)
    args = parser.parse_args()
    wrong = 0
    for script in args.scripts:
        with tempfile.TemporaryDirectory() as store:
            found = Counter(predict(args.dpsight, args.python, script, store) for _ in range(args.times))
        differ = len({peak for peak, _ in found}) > 1
        claimed = differ and any(level == EXACT for _, level in found)
        wrong += claimed
        verdict = "WRONG" if claimed else "unsure" if differ else "equal"
        shown = "; ".join(f"{n} × {peak} ({level or 'no confidence'})" for (peak, level), n in sorted(found.items()))
        print(f"{script.name:24} {verdict:9}  {shown}", flush=True)
    print(f"{len(args.scripts)} scripts, each predicted {args.times} times: {wrong} called exact whose peaks differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
