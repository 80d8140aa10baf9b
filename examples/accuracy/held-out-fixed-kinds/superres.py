"""Super-resolution: residual convolutions with channel attention, pixel shuffle, fp16 autocast with a GradScaler."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, BLOCKS, PATCH, BATCH, STEPS = 96, 8, 64, 24, 6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.GELU(), nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        )
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(WIDTH, WIDTH // 8, 1), nn.ReLU())
        self.excite = nn.Sequential(nn.Conv2d(WIDTH // 8, WIDTH, 1), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        return x + y * self.excite(self.squeeze(y))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, WIDTH, 5, padding=2)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)), nn.Conv2d(WIDTH, WIDTH, 3, padding=1))
        self.grow = nn.Sequential(
            *(nn.Sequential(nn.Conv2d(WIDTH, 4 * WIDTH, 3, padding=1), nn.PixelShuffle(2), nn.GELU()) for _ in range(2))
        )
        self.tail = nn.Conv2d(WIDTH, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = self.head(x)
        return self.tail(self.grow(start + self.blocks(start))) + F.interpolate(x, scale_factor=4, mode="bicubic")


torch.manual_seed(302)
net = Net().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.9, 0.99))
scaler = torch.amp.GradScaler()
for _ in range(STEPS):
    large = torch.rand(BATCH, 3, 4 * PATCH, 4 * PATCH).cuda().to(memory_format=torch.channels_last)
    small = F.interpolate(large, scale_factor=0.25, mode="area")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.l1_loss(net(small), large)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.4f}, scale {scaler.get_scale():.0f}")
