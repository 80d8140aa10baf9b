"""DDP under torchrun: a torchvision ResNet-18 with synchronised batch norms, gradients as bucket views, no_sync."""

import os
from contextlib import nullcontext

import torch
from torch import distributed, nn
from torch.nn import functional as F
from torchvision.models import resnet18

BATCH, STEPS = 64, 5

device = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(device)
distributed.init_process_group("nccl")
torch.manual_seed(14)
model = nn.SyncBatchNorm.convert_sync_batchnorm(resnet18(num_classes=100)).cuda()
model = nn.parallel.DistributedDataParallel(model, device_ids=[device], gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(STEPS):
    optimizer.zero_grad()
    for part in range(2):
        x, y = torch.rand(BATCH, 3, 128, 128).cuda(), torch.randint(0, 100, (BATCH,)).cuda()
        with model.no_sync() if part == 0 else nullcontext():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
    optimizer.step()
    if distributed.get_rank() == 0:
        print(f"step {step}: loss {loss.item():.3f}")
distributed.destroy_process_group()
