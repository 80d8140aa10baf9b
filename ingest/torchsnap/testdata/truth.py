#!/usr/bin/env python3
"""Prints sums over snapshots as JSON, read by Python's pickle. The sums in truth.json come from this script."""

import collections
import json
import pickle
import sys
from pathlib import Path
from typing import Any


def describe(snapshot: dict[str, Any]) -> dict[str, Any]:
    events = [e for trace in snapshot["device_traces"] for e in trace]
    stacks = [tuple((f["name"], f["filename"], f["line"]) for f in e.get("frames", [])) for e in events]
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]]
    sums = {k: sum(e.get(k, 0) for e in events) % 2**64 for k in ("addr", "size", "stream", "time_us")}
    return {
        "events": len(events),
        "actions": dict(sorted(collections.Counter(e["action"] for e in events).items())),
        "sums": sums,
        "frames": sum(map(len, stacks)),
        "frame_lines": sum(f[2] for s in stacks for f in s),
        "name_bytes": sum(len(f[0]) + len(f[1]) for s in stacks for f in s),
        "distinct_stacks": len({s for s in stacks if s}),
        "segments": len(snapshot["segments"]),
        "segment_bytes": sum(s["total_size"] for s in snapshot["segments"]),
        "blocks": len(blocks),
        "block_bytes": sum(b["size"] for b in blocks),
        "requested_bytes": sum(b["requested_size"] for b in blocks if b["state"] != "inactive"),
        "annotations": len(snapshot.get("external_annotations", [])),
    }


if __name__ == "__main__":
    out = {}
    for path in map(Path, sys.argv[1:]):
        with path.open("rb") as f:
            out[path.stem] = describe(pickle.load(f))
    print(json.dumps(out, indent=1))
