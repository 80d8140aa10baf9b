"""A diffusion model: a U-Net with attention that predicts noise, bf16 autocast, a moving average, samples drawn."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, TIMES, SIZE, BATCH, STEPS = 128, 1000, 64, 64, 6


class Residual(nn.Module):
    def __init__(self, before: int, after: int, attends: bool = False) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.GroupNorm(32, before), nn.GroupNorm(32, after)
        self.conv_1, self.conv_2 = nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)
        self.time, self.drop = nn.Linear(4 * WIDTH, after), nn.Dropout(0.1)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()
        self.attention = nn.MultiheadAttention(after, 4, batch_first=True) if attends else None

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv_1(F.silu(self.norm_1(x))) + self.time(F.silu(time))[:, :, None, None]
        x = self.skip(x) + self.conv_2(self.drop(F.silu(self.norm_2(y))))
        if self.attention is not None:
            z = x.flatten(2).transpose(1, 2)
            z = self.attention(z, z, z, need_weights=False)[0]
            x = x + z.transpose(1, 2).reshape(x.shape)
        return x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [WIDTH, 2 * WIDTH, 2 * WIDTH, 4 * WIDTH]
        self.time = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, 4 * WIDTH))
        self.first = nn.Conv2d(3, WIDTH, 3, padding=1)
        pairs = list(zip([WIDTH, *widths[:-1]], widths, strict=True))
        self.down = nn.ModuleList(Residual(a, b, attends=i > 1) for i, (a, b) in enumerate(pairs))
        self.shrink = nn.ModuleList(nn.Conv2d(b, b, 3, stride=2, padding=1) for b in widths[:-1])
        self.middle = Residual(widths[-1], widths[-1], attends=True)
        self.up = nn.ModuleList(Residual(2 * b, a, attends=i > 1) for i, (a, b) in reversed(list(enumerate(pairs))))
        self.last = nn.Sequential(nn.GroupNorm(32, WIDTH), nn.SiLU(), nn.Conv2d(WIDTH, 3, 3, padding=1))

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        angle = t[:, None] * torch.exp(-math.log(1e4) * torch.arange(WIDTH // 2, device=t.device) / (WIDTH // 2))
        time = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        x, kept = self.first(x), []
        for i, block in enumerate(self.down):
            x = block(x, time)
            kept.append(x)
            if i < len(self.shrink):
                x = self.shrink[i](x)
        x = self.middle(x, time)
        for block in self.up:
            skip = kept.pop()
            x = F.interpolate(x, skip.shape[2:]) if x.shape[2:] != skip.shape[2:] else x
            x = block(torch.cat([x, skip], 1), time)
        return self.last(x)


torch.manual_seed(102)
net = Net().cuda()
average = copy.deepcopy(net).requires_grad_(False).eval()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-4)
kept_signal = torch.cumprod(1 - torch.linspace(1e-4, 0.02, TIMES), 0).cuda()
for step in range(STEPS):
    x, t = torch.rand(BATCH, 3, SIZE, SIZE).cuda() * 2 - 1, torch.randint(0, TIMES, (BATCH,)).cuda()
    noise, signal = torch.randn_like(x), kept_signal[t][:, None, None, None]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        guess = net(signal.sqrt() * x + (1 - signal).sqrt() * noise, t)
    loss = F.mse_loss(guess.float(), noise)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for a, p in zip(average.parameters(), net.parameters(), strict=True):
            a.lerp_(p, 0.01)
    print(f"step {step}: loss {loss.item():.3f}")
with torch.inference_mode():
    x = torch.randn(16, 3, SIZE, SIZE).cuda()
    for now, later in ((999, 749), (749, 499), (499, 249), (249, 0)):
        noise, s, after = average(x, torch.full((16,), now).cuda()), kept_signal[now], kept_signal[later]
        x = after.sqrt() * (x - (1 - s).sqrt() * noise) / s.sqrt() + (1 - after).sqrt() * noise
print(f"samples: spread {x.std().item():.3f}")
