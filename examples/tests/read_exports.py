"""Opens the files that dpsight export writes with other programs: Feather files with pandas and polars, event files
with TensorBoard, and a trace as JSON. Prints, as one JSON document, the numbers that these programs read. Its
interpreter needs the packages of requirements/notebooks.txt.

    read_exports.py FOLDER
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pandas
import polars
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def feather(folder: Path) -> dict[str, Any]:
    """Returns the highest value of each column of events.arrow and the peaks of steps, which both libraries must read
    alike."""
    events = pandas.read_feather(folder / "events.arrow")
    other = polars.read_ipc(folder / "events.arrow")
    highest = {name: int(events[name].max()) for name in events.columns if name.endswith("_bytes")}
    assert highest == {name: other[name].max() for name in highest}, "pandas and polars differ"
    assert len(events) == len(other)
    steps = pandas.read_feather(folder / "steps.arrow")
    assert polars.read_ipc(folder / "steps.arrow")["step"].to_list() == list(steps["step"])
    phases = pandas.read_feather(folder / "phases.arrow")
    assert set(steps["step"]) <= set(phases["step"])
    peaks = {str(step): int(peak) for step, peak in zip(steps["step"], steps["peak_bytes"], strict=True) if peak > 0}
    return {"rows": len(events), "highest": highest, "steps": peaks}


def tensorboard(folder: Path) -> dict[str, Any]:
    """Returns each scalar's values by step, and the pictures' sizes."""
    read = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0})
    read.Reload()
    tags = read.Tags()
    scalars = {tag: {str(e.step): e.value for e in read.Scalars(tag)} for tag in tags["scalars"]}
    pictures = {tag: [(p.width, p.height) for p in read.Images(tag)] for tag in tags["images"]}
    return {"scalars": scalars, "pictures": pictures}


def trace(file: Path) -> dict[str, Any]:
    """Returns each counter's highest value and the number of slices of each thread, which must not overlap."""
    document = json.loads(file.read_text())
    events = document["traceEvents"]
    check_trace(document)
    highest: dict[str, int] = defaultdict(int)
    threads: dict[str, list[tuple[float, float]]] = defaultdict(list)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    for e in events:
        if e["ph"] == "C":
            highest[e["name"]] = max(highest[e["name"]], e["args"]["bytes"])
        elif e["ph"] == "X":
            threads[names[e["pid"], e["tid"]]].append((e["ts"], e["ts"] + e["dur"]))
    for name, slices in threads.items():
        ordered = sorted(slices)
        # Perfetto accepts nested slices, and drops slices that overlap in part.
        for (_, end), (begin, later) in zip(ordered, ordered[1:], strict=False):
            assert begin >= end - 0.001 or later <= end + 0.001, f"slices of {name} overlap in part"
    return {"highest": highest, "slices": {name: len(slices) for name, slices in threads.items()}}


def check_trace(document: dict[str, Any]) -> None:
    """Checks a trace against the schema of the Trace Event Format. There are hundreds of thousands of events, so only
    the earliest of each shape is checked."""
    shapes: dict[tuple[Any, ...], dict[str, Any]] = {}
    for e in document["traceEvents"]:
        shape = (e["ph"], tuple(sorted(e)), tuple(sorted((k, type(v)) for k, v in e.get("args", {}).items())))
        if shape not in shapes or e.get("ts", 0) < shapes[shape].get("ts", 0):
            shapes[shape] = e
    schema = json.loads(Path(__file__).with_name("trace_schema.json").read_text())
    jsonschema.validate({**document, "traceEvents": list(shapes.values())}, schema)


def main() -> None:
    folder = Path(sys.argv[1])
    (run,) = (p.name.removesuffix(".perfetto.json") for p in folder.glob("*.perfetto.json"))
    json.dump(
        {
            "arrow": feather(folder / "arrow" / run),
            "tensorboard": tensorboard(folder / "tensorboard" / run),
            "perfetto": trace(folder / f"{run}.perfetto.json"),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
