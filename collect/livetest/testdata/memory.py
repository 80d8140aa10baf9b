"""Trains, and uses torch's allocator in an unusual way.

memory.py reset|history|streams|empty|expandable|pool|graph|caught|fatal
"""

import gc
import sys
import tempfile

import torch
from facts import Net, batch, reset, say, train
from torch.nn import functional as F

mode = sys.argv[1]
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
steps = 5
if mode == "reset":
    for _ in range(steps):
        train(model, optimizer, 1)
        reset(torch.cuda.reset_peak_memory_stats)
    reset(torch.cuda.reset_accumulated_memory_stats)
    train(model, optimizer, 1)
    steps += 1
elif mode == "history":
    train(model, optimizer, 2)
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    train(model, optimizer, 2)
    found = sum(len(trace) for trace in torch.cuda.memory._snapshot()["device_traces"])
    with tempfile.NamedTemporaryFile() as file:
        torch.cuda.memory._dump_snapshot(file.name)
    torch.cuda.memory._record_memory_history(enabled=None)
    train(model, optimizer, 1)
    if found < 10:
        sys.exit(f"its own snapshot has {found} events")
elif mode == "streams":
    side = torch.cuda.Stream()
    for _ in range(steps):
        x, y = batch()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.record_stream(side)
            kept = x * 2
            extra = torch.empty(3 << 20, device="cuda")
            extra.record_stream(torch.cuda.current_stream())
            del extra
        torch.cuda.current_stream().wait_stream(side)
        kept.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad()
        F.cross_entropy(model(kept), y).backward()
        optimizer.step()
        del x, kept
elif mode == "empty":
    for _ in range(steps):
        train(model, optimizer, 1)
        torch.empty(70 << 20, device="cuda", dtype=torch.uint8)
        gc.collect()
        torch.cuda.empty_cache()
elif mode == "expandable":
    held = []
    for i in range(steps):
        train(model, optimizer, 1)
        held.append(torch.empty((i + 1) * 9_000_000, device="cuda", dtype=torch.uint8))
        if i % 2:
            del held[0]
elif mode == "pool":
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(5_000_000, device="cuda")
    train(model, optimizer, steps)
    del inside
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(3_000_000, device="cuda")
    del inside
elif mode == "graph":
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        train(model, optimizer, 3)
    torch.cuda.current_stream().wait_stream(side)
    x, y = batch()
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    for _ in range(3):
        graph.replay()
    steps = 4  # a graph's replays run no Python, so they are no steps
elif mode == "caught":
    train(model, optimizer, 3)
    try:
        torch.empty(1 << 45, device="cuda", dtype=torch.uint8)
    except torch.OutOfMemoryError:
        pass
    train(model, optimizer, 2)
elif mode == "fatal":
    train(model, optimizer, 3)
    say(3)
    model(torch.empty(1 << 38, 64, device="cuda"))
say(steps)
