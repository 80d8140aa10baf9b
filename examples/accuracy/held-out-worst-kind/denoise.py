"""A residual denoiser in fp32: 3x3 and 5x5 convolutions of many images, batch norm, a total-variation loss, RMSprop."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, BATCH, SIDE, STEPS = 72, 88, 30, 6


class Block(nn.Module):
    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, kernel, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.silu(self.norm(self.conv(x)))


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, WIDTH, 5, padding=2)
        self.blocks = nn.Sequential(*(Block(WIDTH, k) for k in (3, 5, 3)))
        self.squeeze = nn.Conv2d(WIDTH, 24, 3, padding=1)
        self.last = nn.Conv2d(24, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.last(F.silu(self.squeeze(self.blocks(self.first(x)))))


torch.manual_seed(977)
model = Denoiser().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
for _ in range(STEPS):
    clean = torch.rand(BATCH, 3, SIDE, SIDE, device="cuda")
    cleaned = model(clean + 0.1 * torch.randn_like(clean))
    rough = cleaned.diff(dim=2).abs().mean() + cleaned.diff(dim=3).abs().mean()
    loss = F.mse_loss(cleaned, clean) + 0.01 * rough
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
