"""FSDP2 under torchrun: each block sharded, bf16 compute over fp32 weights, AdamW on DTensors."""

import os

import torch
from torch import distributed, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

WIDTH, LAYERS, LENGTH, BATCH, STEPS = 1024, 8, 512, 8, 5

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
distributed.init_process_group("nccl")
torch.manual_seed(13)
model = nn.Sequential(
    *(nn.TransformerEncoderLayer(WIDTH, 16, batch_first=True, norm_first=True) for _ in range(LAYERS)),
    nn.Linear(WIDTH, 100),
).cuda()
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model:
    fully_shard(layer, mp_policy=policy)
fully_shard(model, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(STEPS):
    x, y = torch.randn(BATCH, LENGTH, WIDTH).cuda(), torch.randint(0, 100, (BATCH, LENGTH)).cuda()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if distributed.get_rank() == 0:
        print(f"step {step}: loss {loss.item():.3f}")
distributed.destroy_process_group()
