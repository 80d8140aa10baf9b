#!/usr/bin/env python3
"""Records a small snapshot with whatever the installed torch can put into one: record.py OUT.pickle, on a CUDA device.

torch-2.11.pickle and torch-2.15.pickle were made by it. Paths in frames are cut to the file's name.
"""

import pickle
import sys
from typing import Any

import torch

memory = torch.cuda.memory


def scrub(frames: list[dict[str, Any]]) -> None:
    for f in frames:
        f["filename"] = f["filename"].rsplit("/", 1)[-1]


def main(path: str) -> None:
    memory._record_memory_history("all", context=None, max_entries=100_000)
    keep = [torch.empty(1000, 1000, device="cuda")]
    torch._C._cuda_setMemoryMetadata("17")
    parts = [torch.empty(n * 1000, device="cuda") for n in (1, 400, 3000)]
    if hasattr(memory, "_annotate_tensor"):
        memory._annotate_tensor(parts[0], "tag: part 0")
    torch._C._cuda_setMemoryMetadata('{"k":5,"phase":"forward"}')
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        keep.append(torch.empty(2 << 20, device="cuda"))
    memory._record_memory_history("all", context="all", stacks="python", max_entries=100_000)
    with torch.autograd.profiler.record_function("user step"):
        keep.append(torch.empty(700, device="cuda"))
    torch._C._cuda_setMemoryMetadata("18")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        other = torch.empty(123456, device="cuda")
        other.record_stream(torch.cuda.default_stream())
    del other, parts[1]
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        keep.append(torch.empty(4096, device="cuda") + 1)
    memory._snapshot()
    snapshot = memory._snapshot()
    for segment in snapshot["segments"]:
        scrub(segment["frames"])
        for block in segment["blocks"]:
            scrub(block["frames"])
    for trace in snapshot["device_traces"]:
        for event in trace:
            scrub(event.get("frames", []))
    with open(path, "wb") as f:
        pickle.dump(snapshot, f)


if __name__ == "__main__":
    main(sys.argv[1])
