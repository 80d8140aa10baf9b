"""A post-norm encoder on pooled tokens: four micro-batches an update, a checkpoint a block, SGD with Nesterov."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

WIDTH, LAYERS, LENGTH, BATCH, MICRO, STEPS = 1024, 8, 512, 16, 4, 5

torch.manual_seed(6)
blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 16, batch_first=True) for _ in range(LAYERS)).cuda()
head = nn.Linear(WIDTH, 10).cuda()
parameters = [*blocks.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True)
for step in range(STEPS):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(MICRO):
        x, y = torch.randn(BATCH, LENGTH, WIDTH).cuda(), torch.randint(0, 10, (BATCH,)).cuda()
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        loss = F.cross_entropy(head(x.mean(1)), y) / MICRO
        loss.backward()
        total += loss.item()
    optimizer.step()
    print(f"step {step}: loss {total:.3f}")
