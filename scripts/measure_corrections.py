"""Measures how much each correction of the phantom GPU improves predictions: measure_corrections.py DPSIGHT PYTHON
[CORRECTION…].

Predicts recorded scripts of examples/accuracy with all corrections, and then without one. Prints by how many
bytes the peaks, allocated and reserved, differ from the recorded ones: the figures of
collect/phantom/CORRECTIONS.md. PYTHON is an interpreter with the packages of requirements/scripts.txt. Without a
correction's name, all are measured. Run it from the repository's root. Each prediction takes some seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ACCURACY = Path("examples/accuracy")

# By correction, the scripts whose predictions it was seen to change, or for which it was made.
SCRIPTS = {
    "clusters": ["held-out/gan", "held-out/diffusion"],
    "products": ["held-out-missed-kinds/bottleneck"],
    "winograd": ["held-out-worst-kind/denoise"],
    "fourier": ["held-out-missed-kinds/hinge"],
    "fourier-tiles": ["held-out-worst-kind/denoise"],
    "batch-norm": ["held-out/resnet"],
    "context": ["development/accumulate", "held-out/gan"],
    "local-memory": ["development/accumulate", "held-out/gan"],
    "first-kernel": ["development/accumulate"],
    "more-code": ["development/accumulate"],
    "cublas-handle": ["held-out-fixed-kinds/vae"],
}


def recorded() -> dict[str, tuple[int, int]]:
    """Returns the peaks of all recorded scripts, by name."""
    peaks = {}
    for file in ACCURACY.glob("recorded-*.json"):
        for x in json.loads(file.read_text())["experiments"]:
            if x.get("peak_bytes") is not None:
                peaks[x["name"]] = x["peak_bytes"], x["peak_reserved_bytes"]
    return peaks


def predicted(dpsight: str, python: str, script: str, without: str) -> tuple[int, int]:
    """Predicts a script, and returns the peaks of its first rank by torch's own counters."""
    with tempfile.TemporaryDirectory() as store:
        command = [dpsight, "collect", "--device", "phantom", "--bare", "--store", store, "--"]
        command += [python, str(ACCURACY / f"{script}.py")]
        env = {**os.environ, "PHANTOM_WITHOUT": without}
        subprocess.run(command, env=env, check=True, capture_output=True)
        (report,) = Path(store).glob("*/ingest.json")
        device = json.loads(report.read_text())["devices"][0]
    return device["torch_peak_allocated_bytes"], device["torch_peak_reserved_bytes"]


def main(dpsight: str, python: str, *corrections: str) -> None:
    device = recorded()
    whole: dict[str, tuple[int, int]] = {}
    for correction in corrections or SCRIPTS:
        for script in SCRIPTS[correction]:
            if script not in whole:
                whole[script] = predicted(dpsight, python, script, "")
            without = predicted(dpsight, python, script, correction)
            name = script.rsplit("/", 1)[1]
            figures = []
            for i, what in enumerate(("allocated", "reserved")):
                at_first, then = whole[script][i] - device[name][i], without[i] - device[name][i]
                figures.append(f"{what} {then:+,} bytes off instead of {at_first:+,}")
            print(f"without {correction}, {name}: {'; '.join(figures)}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
