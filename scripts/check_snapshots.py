#!/usr/bin/env python3
"""Compares dpsight's import of memory snapshots with an independent replay:

    check_snapshots.py DPSIGHT FOLDER [--list FILE]

The script prints a line for each file and device. The line has the highest sum of requested bytes twice: as this script
counts it from the events, and as it follows from dpsight's table of allocations. The script exits with 1 if the two
differ, or if dpsight refuses a file. With --list it checks only the files in FOLDER whose digests FILE lists. Each line
of FILE has repository, commit, path and SHA-256, as in scripts/snapshots.tsv. The script needs pyarrow, and loads the
files with an unpickler that makes only plain values."""

import argparse
import hashlib
import json
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any


class Values(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"refused {module}.{name}")


def requested_peaks(snapshot: Any) -> dict[int, int]:
    """Returns the highest sum of requested bytes, for each device that has events or blocks in use."""
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot}
    traces = snapshot.get("device_traces") or []
    segments = snapshot.get("segments") or []
    devices = range(max([len(traces)] + [s["device"] + 1 for s in segments]))
    peaks = {d: device_peak(traces[d] if d < len(traces) else [], segments, d) for d in devices}
    return {d: peak for d, peak in peaks.items() if peak is not None}


def device_peak(events: list[dict[str, Any]], segments: list[dict[str, Any]], device: int) -> int | None:
    """Returns the highest sum of requested bytes of a device. A first pass finds the blocks that are older than the
    events: blocks that the events free without having allocated them, and blocks in use at the end that no event
    allocated. The second pass sums."""
    ends = "free_requested" if any(e["action"] == "free_requested" for e in events) else ("free", "free_completed")
    ends = (ends,) if isinstance(ends, str) else ends
    live: set[int] = set()
    older = 0
    for e in events:
        if e["action"] == "alloc":
            live.add(e["addr"])
        elif e["action"] in ends:
            if e["addr"] not in live:
                older += e["size"]
            live.discard(e["addr"])
    at_end = [b for s in segments if s["device"] == device for b in used_blocks(s)]
    if not events and not at_end:
        return None
    older += sum(size for address, size in at_end if address not in live)
    now = peak = older
    for e in events:
        if e["action"] == "alloc":
            now += e["size"]
            peak = max(peak, now)
        elif e["action"] in ends:
            now -= e["size"]
    return peak


def used_blocks(segment: dict[str, Any]) -> list[tuple[int, int]]:
    """Returns the address and requested size of each block in use of a segment."""
    out = []
    address = segment.get("address", 0)
    for b in segment["blocks"]:
        address = b.get("address", address)
        if b["state"] == "active_allocated":
            past = b.get("history") or [{}]
            out.append((address, b.get("requested_size", past[0].get("real_size", b["size"])) or b["size"]))
        address += b["size"]
    return out


def found_peaks(run: Path) -> dict[int, int]:
    """Returns the highest sums of requested bytes by device, from dpsight's table of allocations."""
    import pyarrow.parquet as pq

    columns = ["device", "requested_bytes", "alloc_seq", "free_requested_seq"]
    rows = pq.read_table(run / "allocations.parquet", columns=columns).to_pylist()
    changes: dict[int, dict[int, int]] = {}
    for r in rows:
        made, given_back = r["alloc_seq"] or 0, r["free_requested_seq"] or 0
        if given_back < 0:  # freed before the first event
            continue
        of = changes.setdefault(r["device"], {})
        of[made] = of.get(made, 0) + r["requested_bytes"]
        if given_back:
            of[given_back] = of.get(given_back, 0) - r["requested_bytes"]
    peaks = {}
    for device, of in changes.items():
        now = peak = 0
        for seq in sorted(of):
            now += of[seq]
            peak = max(peak, now)
        peaks[device] = peak
    return peaks


def known_share(run: Path, device: int, peak: int) -> tuple[int, int]:
    """Returns the bytes at the peak whose blocks have a Python frame, and how many of these bytes have a category that
    is not only known by the phase of birth."""
    import pyarrow.parquet as pq

    stacks = pq.read_table(run / "stacks.parquet", columns=["stack_id", "file"]).to_pylist()
    python = {f["stack_id"] for f in stacks if f["file"].endswith(".py") or f["file"].startswith("<")}
    owners: dict[int, list[dict[str, Any]]] = {}
    for o in pq.read_table(run / "owners.parquet").to_pylist():
        if o["device"] == device:
            owners.setdefault(o["alloc_id"], []).append(o)
    with_frame = known = 0
    for a in pq.read_table(run / "allocations.parquet").to_pylist():
        end = a["free_requested_seq"] or 0
        alive = (a["alloc_seq"] or 0) <= peak and (end == 0 or end > peak)
        if a["device"] != device or not alive or a["stack_id"] not in python:
            continue
        with_frame += a["requested_bytes"]
        if any(o["evidence"] != "phase" and o["category"] != "untraced" for o in owners.get(a["alloc_id"], [])):
            known += a["requested_bytes"]
    return with_frame, known


def check(dpsight: str, path: Path, store: str) -> list[tuple[str, str]]:
    """Compares the two counts of one file. Returns a verdict and a sentence for each device."""
    with path.open("rb") as f:
        want = requested_peaks(Values(f).load())
    done = subprocess.run(
        [dpsight, "ingest", "--store", store, "--format", "json", str(path)], capture_output=True, text=True
    )
    if done.returncode != 0:
        sentence = (done.stderr or done.stdout).splitlines()[0]
        return [("refused" if want else "empty", sentence.removeprefix("dpsight: error: "))]
    run = Path(store) / json.loads(done.stdout)["inputs"][0]["run_ids"][0]
    report = json.loads((run / "ingest.json").read_text())
    devices = {d["device"]: d for d in report["devices"]}
    found = found_peaks(run)
    out = []
    for d, peak in want.items():
        sentence = f"device {d}: {peak:,} B, dpsight {found.get(d, 0):,} B"
        if d in devices:
            framed, known = known_share(run, d, devices[d]["peak_seq"])
            sentence += f", {devices[d]['verdict']}"
            if framed:
                sentence += (
                    f"; at the peak {framed:,} B have a frame of Python, {100 * known / framed:.0f} % a category"
                )
        out.append(("equal" if found.get(d, 0) == peak else "DIFFERS", sentence))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dpsight")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path)
    args = parser.parse_args()
    paths = sorted(p for p in args.folder.rglob("*") if p.is_file())
    if args.list:
        wanted = {line.split("\t")[3] for line in args.list.read_text().splitlines() if not line.startswith("#")}
        paths = [p for p in paths if hashlib.sha256(p.read_bytes()).hexdigest() in wanted]
        print(f"{len(paths)} of {len(wanted)} listed files are in {args.folder}")
    bad = 0
    shares = []
    for path in paths:
        with tempfile.TemporaryDirectory() as store:
            for word, sentence in check(args.dpsight, path, store):
                bad += word not in ("equal", "empty")
                print(f"{word:8} {path.name}: {sentence}", flush=True)
                if found := re.search(r"(\d+) % a category", sentence):
                    shares.append(int(found[1]))
    if shares:
        enough = sum(s >= 60 for s in shares)
        print(
            f"of {len(shares)} devices {enough} have a category for 60 % or more; the median is {median(shares):.0f} %"
        )
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
