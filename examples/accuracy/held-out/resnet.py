"""A ResNet-50 of torchvision: SGD with momentum, fp16, a gradient scaler, loader workers, pinned memory."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50

BATCH, SIZE, CLASSES, EPOCHS = 96, 224, 1000, 2


class Pictures(Dataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        random = torch.Generator().manual_seed(i)
        return torch.randint(0, 256, (3, SIZE, SIZE), dtype=torch.uint8, generator=random), i % CLASSES


def prepared(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda(non_blocking=True).to(memory_format=torch.channels_last)
    mean = torch.tensor((0.485, 0.456, 0.406), device="cuda")[:, None, None]
    return (x.float() / 255 - mean) / torch.tensor((0.229, 0.224, 0.225), device="cuda")[:, None, None]


torch.manual_seed(106)
shared = {"batch_size": BATCH, "num_workers": 4, "pin_memory": True, "persistent_workers": True}
training = DataLoader(Pictures(500), shuffle=True, **shared)
testing = DataLoader(Pictures(200), **shared)
model = resnet50(num_classes=CLASSES, zero_init_residual=True).cuda().to(memory_format=torch.channels_last)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
scaler = torch.amp.GradScaler("cuda")
for epoch in range(EPOCHS):
    model.train()
    for x, y in training:
        x, y = prepared(x), y.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    schedule.step()
    model.eval()
    right = torch.zeros((), device="cuda")
    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
        for x, y in testing:
            best = model(prepared(x)).topk(5, dim=1).indices
            right += (best == y.cuda(non_blocking=True)[:, None]).any(1).sum()
    print(f"epoch {epoch}: loss {loss.item():.3f}, {int(right.item())} right among five")
