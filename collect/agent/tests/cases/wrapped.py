"""Trains one rank whose model DDP or FSDP2 wraps: wrapped.py ddp|fsdp2."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo" if "gloo" in sys.argv else None, store=dist.HashStore(), rank=0, world_size=1)
model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8)).to("cuda")
if sys.argv[1] == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.fsdp import fully_shard

    fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(4, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
