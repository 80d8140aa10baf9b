"""Makes a training step on the phantom GPU. The measured bytes must follow from the allocator's rounding to 512
bytes."""

import json
import sys

import torch


def rounded(tensors):
    return sum((t.numel() * t.element_size() + 511) // 512 * 512 for t in tensors)


torch.cuda.memory._record_memory_history("all", context=None)
model = torch.nn.Sequential(torch.nn.Linear(100, 300), torch.nn.ReLU(), torch.nn.Linear(300, 10)).cuda()
parameters = rounded(model.parameters())
after_model = torch.cuda.memory_allocated()
optimizer = torch.optim.AdamW(model.parameters())
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
for _ in range(2):
    optimizer.zero_grad()
    inputs = torch.randn(32, 100).cuda()
    loss = torch.nn.functional.cross_entropy(model(inputs), torch.randint(0, 10, (32,)).cuda())
    loss.backward()
    before_step = torch.cuda.memory_allocated()
    optimizer.step()
    after_step = torch.cuda.memory_allocated()
    growth = after_step - before_step
    if _ == 0:
        first_growth = growth
end.record()
torch.cuda.synchronize()
state = [t for s in optimizer.state.values() for t in s.values() if t.is_cuda]
stats = torch.cuda.memory_stats()
trace = torch.cuda.memory._snapshot()["device_traces"][0]
maps = open("/proc/self/maps").read().split()
properties = torch.cuda.get_device_properties(0)
json.dump(
    {
        "available": torch.cuda.is_available(),
        "devices": torch.cuda.device_count(),
        "name": properties.name,
        "total": properties.total_memory,
        "free_at_start": torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved(),
        "parameters": parameters,
        "after_model": after_model,
        "state": rounded(state),
        "first_growth": first_growth,
        "second_growth": growth,
        "peak": torch.cuda.max_memory_allocated(),
        "allocations": stats["allocation.all.allocated"],
        "alloc_events": sum(e["action"] == "alloc" for e in trace),
        "requested": stats["requested_bytes.all.allocated"],
        "requested_events": sum(e["size"] for e in trace if e["action"] == "alloc"),
        "elapsed": begin.elapsed_time(end),
        "drivers": sorted({m for m in maps if "libcuda.so" in m or "libnvidia-ml.so" in m}),
    },
    sys.stdout,
)
