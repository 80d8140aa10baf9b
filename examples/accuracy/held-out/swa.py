"""An EfficientNet of torchvision: RMSprop, stochastic depth, averaged weights at the end, batch norms set anew."""

import torch
from torch.nn import functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import efficientnet_v2_s

BATCH, SIZE, CLASSES, EPOCHS = 64, 192, 100, 4

torch.manual_seed(109)
data = TensorDataset(torch.rand(160, 3, SIZE, SIZE), torch.randint(0, CLASSES, (160,)))
loader = DataLoader(data, batch_size=BATCH, shuffle=True)
model = efficientnet_v2_s(num_classes=CLASSES).cuda()
average = AveragedModel(model)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, eps=1e-3, momentum=0.9, weight_decay=1e-5)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
constant = SWALR(optimizer, swa_lr=5e-4, anneal_epochs=1)
for epoch in range(EPOCHS):
    model.train()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= EPOCHS // 2:
        average.update_parameters(model)
        constant.step()
    else:
        cosine.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
update_bn(loader, average, device="cuda")
average.eval()
with torch.no_grad():
    right = sum((average(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in loader)
print(f"{right} right")
