"""A ViT-B/16 from torchvision: bf16 autocast, fused AdamW, an exponential average of the weights, mixed-up labels."""

import torch
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision.models import vit_b_16

BATCH, CLASSES, STEPS = 64, 1000, 6

torch.manual_seed(2)
model = vit_b_16(num_classes=CLASSES).cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.3, fused=True)
images = torch.rand(BATCH, 3, 224, 224).pin_memory()
for step in range(STEPS):
    x = images.cuda(non_blocking=True)
    labels = F.one_hot(torch.randint(0, CLASSES, (BATCH,)), CLASSES).float().cuda()
    x, labels = 0.7 * x + 0.3 * x.flip(0), 0.7 * labels + 0.3 * labels.flip(0)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)
    print(f"step {step}: loss {loss.item():.3f}")
