"""A MobileNetV3 of torchvision: depthwise and 1x1 convolutions, RMSprop, averaged weights for a validation pass."""

import torch
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision.models import mobilenet_v3_large

BATCH, SIZE, CLASSES, STEPS = 96, 160, 120, 8

torch.manual_seed(401)
model = mobilenet_v3_large(num_classes=CLASSES, dropout=0.1).cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3, alpha=0.9, momentum=0.9, weight_decay=1e-5)
for _ in range(STEPS):
    x, y = torch.rand(BATCH, 3, SIZE, SIZE).cuda(), torch.randint(0, CLASSES, (BATCH,)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
average.eval()
with torch.no_grad():
    right = (average(torch.rand(BATCH, 3, SIZE, SIZE).cuda()).argmax(1) == 0).sum()
print(f"loss {loss.item():.3f}, {int(right)} of class 0")
