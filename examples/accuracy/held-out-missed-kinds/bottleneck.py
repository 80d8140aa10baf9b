"""Segmentation with bottlenecks: 1x1 convolutions around dilated ones, pooled context, fp16 with a GradScaler, SGD."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, CLASSES, SIZE, BATCH, STEPS = 128, 12, 192, 12, 7


def conv(before: int, after: int, kernel: int = 1, dilation: int = 1, stride: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(before, after, kernel, stride, kernel // 2 * dilation, dilation, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(after), nn.ReLU())


class Bottleneck(nn.Module):
    def __init__(self, dilation: int) -> None:
        super().__init__()
        narrow = WIDTH // 4
        self.body = nn.Sequential(conv(WIDTH, narrow), conv(narrow, narrow, 3, dilation), conv(narrow, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv(3, 48, 3, stride=2), conv(48, WIDTH, 3, stride=2))
        self.blocks = nn.Sequential(*(Bottleneck(d) for d in (1, 2, 4, 8, 1, 2)))
        self.context = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(WIDTH, WIDTH, 1), nn.ReLU())
        self.head = nn.Sequential(conv(2 * WIDTH, WIDTH), nn.Dropout2d(0.1), nn.Conv2d(WIDTH, CLASSES, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.blocks(self.stem(x))
        y = torch.cat([y, self.context(y).expand_as(y)], 1)
        return F.interpolate(self.head(y), scale_factor=4, mode="bilinear")


torch.manual_seed(402)
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
scaler = torch.amp.GradScaler()
for _ in range(STEPS):
    x = torch.rand(BATCH, 3, SIZE, SIZE).cuda()
    y = torch.randint(0, CLASSES, (BATCH, SIZE, SIZE)).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.3f}")
