"""Prints the device's properties as torch sees them. Runs operators that use CUB, and measures cuBLAS's workspace."""

import json
import sys

import torch

properties = torch.cuda.get_device_properties(0)
keys = torch.arange(100_000, dtype=torch.float32).cuda()
torch.sort(keys, stable=True)
torch.cumsum(keys, 0)
torch.randperm(50_000, device="cuda")
matrix = torch.ones(256, 256).cuda()
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
result = matrix @ matrix
workspace = torch.cuda.max_memory_allocated() - before - 4 * result.numel()
query = torch.zeros(1, 8, 512, 64, dtype=torch.float16).cuda()
torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True)
json.dump(
    {
        "name": properties.name,
        "total": properties.total_memory,
        "capability": list(torch.cuda.get_device_capability(0)),
        "multiprocessors": properties.multi_processor_count,
        "architectures": torch.cuda.get_arch_list(),
        "workspace": workspace,
    },
    sys.stdout,
)
