#!/usr/bin/env python3
"""Drives torch's own caching allocator at random and records it.

    record_mix.py OUT.pickle SEED [pool] [graph] [oom] [train] [compile]

Allocates and frees on four streams with record_stream, empties the cache, and as asked uses a MemPool, captures CUDA
graphs, runs out of memory, or trains a small model. Writes the memory snapshot to OUT.pickle and torch's counters at
random moments, and at the end, to OUT.counters.json: for each the number of events before it. The recordings beside
this script are made with it on a phantom GPU whose events lag behind, so that frees stay pending; recorded_test.go has
the settings of each.
"""

from __future__ import annotations

import json
import pickle
import random
import sys

import torch

DEVICE = "cuda"


def counters() -> dict[str, int]:
    stats = torch.cuda.memory_stats()
    now = {name: stats[f"{name}_bytes.all.current"] for name in ("allocated", "reserved", "active", "requested")}
    return now | {f"{name}_peak": stats[f"{name}_bytes.all.peak"] for name in ("allocated", "reserved")}


def tensor(rnd: random.Random) -> torch.Tensor:
    kind = rnd.random()
    if kind < 0.3:
        size = rnd.randint(1, 4096)
    elif kind < 0.6:
        size = rnd.randint(4096, 1 << 20)
    elif kind < 0.85:
        size = rnd.randint(1 << 20, 12 << 20)
    else:
        size = rnd.randint(10 << 20, 90 << 20)
    return torch.empty(size, dtype=torch.uint8, device=DEVICE)


def capture() -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(1 << 20, device=DEVICE)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        x = x * 2
        for _ in range(5):
            x = x + 1
            y = x.reshape(1024, 1024) @ x.reshape(1024, 1024)
    return graph, y


def train(compiled: bool) -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).to(DEVICE)
    forward = torch.compile(model, mode="reduce-overhead") if compiled else model
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        forward(torch.randn(64, 1024).to(DEVICE)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def main(out: str, seed: int, modes: set[str]) -> None:
    rnd = random.Random(seed)
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=10**7)
    streams = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(3)]
    pool = torch.cuda.MemPool() if "pool" in modes else None
    held: list[torch.Tensor] = []
    graphs: list[tuple[torch.cuda.CUDAGraph, torch.Tensor]] = []
    checkpoints: list[dict[str, int]] = []

    def checkpoint() -> dict:
        snapshot = torch.cuda.memory._snapshot()  # its own event comes after the trace was copied
        checkpoints.append({"seq": len(snapshot["device_traces"][0])} | counters())
        return snapshot

    for _ in range(2500):
        p = rnd.random()
        if p < 0.5 and len(held) < 120:
            with torch.cuda.stream(rnd.choice(streams)):
                held.append(tensor(rnd))
            if rnd.random() < 0.3:
                held[-1].record_stream(rnd.choice(streams))
        elif p < 0.97:
            if held:
                held.pop(rnd.randrange(len(held)))
        elif p < 0.975:
            torch.cuda.empty_cache()
        elif p < 0.982:
            checkpoint()
        elif p < 0.986 and pool is not None:
            with torch.cuda.use_mem_pool(pool):
                held += [tensor(rnd) for _ in range(20)]
        elif p < 0.99 and "graph" in modes:
            graphs = [*graphs[-1:], capture()]
        elif p < 0.993 and "oom" in modes:
            try:
                torch.empty(1 << 45, dtype=torch.uint8, device=DEVICE)
            except torch.cuda.OutOfMemoryError:
                pass
    if "train" in modes:
        train("compile" in modes)
    snapshot = checkpoint()
    with open(out, "wb") as f:
        pickle.dump(snapshot, f, protocol=4)
    with open(out.removesuffix(".pickle") + ".counters.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in checkpoints) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), set(sys.argv[3:]))
