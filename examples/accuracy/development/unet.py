"""A U-Net for segmentation: convolutions and group norms, channels-last, bf16 autocast, a Dice loss."""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SIDE, CLASSES, STEPS, WIDTHS = 8, 256, 4, 6, (32, 64, 128, 256)


def double(before: int, after: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (before, after):
        layers += [nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.GroupNorm(8, after), nn.SiLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(double(a, b) for a, b in zip((3, *WIDTHS), WIDTHS, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(WIDTHS, WIDTHS[1:], strict=False))
        self.join = nn.ModuleList(double(2 * a, a) for a in WIDTHS[:-1])
        self.head = nn.Conv2d(WIDTHS[0], CLASSES, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skipped = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            skipped.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat([self.up[i](x), skipped[i]], dim=1))
        return self.head(x)


def dice(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    p, t = logits.float().softmax(1), F.one_hot(target, CLASSES).permute(0, 3, 1, 2)
    return 1 - (2 * (p * t).sum((0, 2, 3)) + 1).div((p + t).sum((0, 2, 3)) + 1).mean()


torch.manual_seed(3)
model = UNet().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
best = float("inf")
for _ in range(STEPS):
    x = torch.rand(BATCH, 3, SIDE, SIDE).to("cuda", memory_format=torch.channels_last)
    y = torch.randint(0, CLASSES, (BATCH, SIDE, SIDE)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(x)
    loss = F.cross_entropy(logits.float(), y) + dice(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    best = min(best, loss.item())
print(f"best loss {best:.3f}")
