"""DDP under torchrun: a torchvision Swin, a static graph, bf16 reductions, AdamW's state split between the ranks."""

import os

import torch
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torchvision.models import swin_t

BATCH, SIZE, CLASSES, EPOCHS = 32, 224, 200, 2

device = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(device)
distributed.init_process_group("nccl")
torch.manual_seed(114)
data = TensorDataset(torch.rand(256, 3, SIZE, SIZE), torch.randint(0, CLASSES, (256,)))
sampler = DistributedSampler(data, seed=114)
loader = DataLoader(data, batch_size=BATCH, sampler=sampler, pin_memory=True)
model = swin_t(num_classes=CLASSES).cuda()
model = nn.parallel.DistributedDataParallel(model, device_ids=[device], static_graph=True, bucket_cap_mb=50)
model.register_comm_hook(None, bf16_compress_hook)
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=5e-4, weight_decay=0.05)
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    model.train()
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    right = torch.zeros((), device="cuda")
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        for x, y in loader:
            right += (model.module(x.cuda()).argmax(1) == y.cuda()).sum()
    distributed.all_reduce(right)
    if distributed.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}, {int(right.item())} right")
distributed.destroy_process_group()
