#!/usr/bin/env python3
"""Predicts the scripts of examples/reports, and compares the categories and lines that hold their peaks with
expected.tsv. Prints a table in Markdown, and below it what was found instead where they differ. Exits 1 if a script
could not be predicted.

  measure_reports.py [--dpsight PROGRAM] [--python PYTHON] [--jobs N] [SCRIPT ...]

In expected.tsv a category can be several categories joined by +, or line:TEXT, which means lines whose text contains
TEXT."""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "reports"
MIB = 2**20


@dataclass
class Measured:
    peak: int = 0
    phase_only: int = 0
    line_known: int = 0
    categories: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    error: str = ""

    def percent(self, count: int) -> float:
        return 100 * count / self.peak if self.peak else 0.0

    def share(self, wanted: str) -> float:
        if wanted.startswith("line:"):
            text = wanted.removeprefix("line:")
            return self.percent(sum(count for line, count in self.lines.items() if text in line))
        return self.percent(sum(self.categories[name] for name in wanted.split("+")))


def expectations() -> dict[str, list[tuple[str, float]]]:
    wanted: dict[str, list[tuple[str, float]]] = defaultdict(list)
    with (FOLDER / "expected.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            wanted[row["script"]].append((row["category"], float(row["least_percent"])))
    return dict(wanted)


def device(program: str, store: str, run: str, *more: str) -> dict[str, Any]:
    command = [program, "analyze", "breakdown", "--store", store, "--format", "json", *more, run]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(found)["runs"][0]["devices"][0]


def measure(program: str, python: str, script: str) -> Measured:
    with tempfile.TemporaryDirectory() as store:
        command = [program, "predict", "--quiet", "--format", "json", "--store", store, "--name", script]
        command += ["--", python, str(FOLDER / f"{script}.py")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return Measured(error=(done.stderr.strip() or done.stdout.strip()).splitlines()[-1])
        run = json.loads(done.stdout)["runs"][0]["run_id"]
        whole = device(program, store, run)
        rows = device(program, store, run, "--by", "line", "--top", "0")["rows"]
    measured = Measured(peak=whole["allocated_bytes"])
    for category in whole["categories"]:
        measured.categories[category["category"]] += category["bytes"]
        measured.phase_only += category["phase_only_bytes"]
    for row in rows:
        if row.get("source"):
            measured.lines[row["source"]] += row["bytes"]
    measured.line_known = sum(measured.lines.values())
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="names in expected.tsv (default: all)")
    parser.add_argument("--dpsight", default="dpsight", help="the program that is measured")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch and Opacus")
    parser.add_argument("--jobs", type=int, default=1, help="scripts that are predicted at a time")
    options = parser.parse_args()
    wanted = expectations()
    names = options.scripts or list(wanted)
    print("| Script | Peak MiB | Verdict | Other and untraced % | By phase only % | Line known % |")
    print("|:---|---:|:---|---:|---:|---:|", flush=True)
    notes, right, failed = [], 0, False
    pool = ThreadPoolExecutor(options.jobs)
    for name, measured in zip(
        names, pool.map(lambda name: measure(options.dpsight, options.python, name), names), strict=True
    ):
        if measured.error:
            print(f"| `{name}` | – | not predicted | – | – | – |")
            notes.append(f"- `{name}`: {measured.error}")
            failed = True
            continue
        missed = [(what, least) for what, least in wanted[name] if measured.share(what) < least]
        right += not missed
        unknown = measured.percent(measured.categories["other"] + measured.categories["untraced"])
        print(
            f"| `{name}` | {measured.peak / MIB:,.0f} | {'wrong' if missed else 'right'} | {unknown:.1f} | "
            f"{measured.percent(measured.phase_only):.1f} | {measured.percent(measured.line_known):.1f} |",
            flush=True,
        )
        if missed:
            short = ", ".join(f"{what} {measured.share(what):.1f} % of at least {least:g} %" for what, least in missed)
            most = ", ".join(f"{what} {measured.percent(n):.1f} %" for what, n in measured.categories.most_common(4))
            notes.append(f"- `{name}`: {short}. The peak: {most}.")
    print(f"\n{right} of {len(names)} right.")
    print("\n".join(notes))
    sys.exit(failed)


if __name__ == "__main__":
    main()
