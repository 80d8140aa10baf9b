"""%load_ext dpsight: the cell magic %%dpsight records a cell, and shows the cell's memory by category."""

from __future__ import annotations

import argparse
import html
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from dpsight.client.program import environment, find

MIB = 1 << 20


class Run:
    """A recorded cell. A notebook shows it as a table of the cell's memory at the peak, by category."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.run_id: str = manifest["run_id"]
        self.status: str = manifest["status"]
        self.source: str = manifest["source"]
        command = [find(), "analyze", "breakdown", os.fspath(folder), "--format", "json"]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        self.problem = done.stderr.strip() if done.returncode else ""
        # One entry for each device: allocated_bytes, categories, conservation, …
        self.devices: list[dict[str, Any]] = [] if done.returncode else json.loads(done.stdout)["runs"][0]["devices"]

    def __repr__(self) -> str:
        peaks = ", ".join(f"{d['device']} {d['allocated_bytes'] / MIB:,.2f} MiB" for d in self.devices)
        return f"{self.run_id}: {self.status}, {self.source}, peak allocated {peaks or 'unknown'}"

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.run_id)}</b>: {self.status}, {self.source}</p>"]
        if self.problem:
            parts.append(f"<pre>{html.escape(self.problem)}</pre>")
        for device in self.devices:
            total = device["allocated_bytes"]
            held = [(row["category"], row["bytes"]) for row in device["categories"] if row["bytes"]]
            rows = "".join(_row(name, size, total) for name, size in [*held, ("allocated", total)])
            head = f"<tr><th>{html.escape(device['device'])}, at the peak</th><th>MiB</th><th>%</th></tr>"
            parts.append(f"<table>{head}{rows}</table>")
        return "\n".join(parts)


def _row(name: str, size: int, total: int) -> str:
    share = 100 * size / total if total else 0.0
    return f"<tr><td>{html.escape(name)}</td><td>{size / MIB:,.2f}</td><td>{share:.1f}</td></tr>"


def record(line: str, cell: str) -> Run | None:
    """Records a cell in its own process, with options of dpsight collect."""
    parser = argparse.ArgumentParser(prog="%%dpsight", add_help=False)
    parser.add_argument("--store", default="runs")
    parser.add_argument("--name", default="cell")
    known, options = parser.parse_known_args(shlex.split(line))
    store = Path(known.store)
    before = {file.parent for file in store.glob("*/run.json")}
    variables = environment()
    # The notebook's folder is searched like the script's folder, so that the cell finds modules beside the notebook.
    variables["PYTHONPATH"] = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as work:
        script = Path(work) / "cell.py"
        script.write_text(cell, encoding="utf-8")
        command = [find(), "collect", "--quiet", "--store", known.store, "--name", known.name, *options]
        command += ["--", sys.executable, os.fspath(script)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True)
    runs = sorted({file.parent for file in store.glob("*/run.json")} - before)
    if not runs:
        sys.stderr.write(done.stderr)
        return None
    sys.stdout.write((runs[-1] / "stdout.log").read_text(encoding="utf-8", errors="replace"))
    sys.stderr.write((runs[-1] / "stderr.log").read_text(encoding="utf-8", errors="replace"))
    return Run(runs[-1])


def load(shell: Any) -> None:
    shell.register_magic_function(record, "cell", "dpsight")
