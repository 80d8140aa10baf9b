"""A GAN whose first kernel draws noise: spectral norm, conditional batch norm, a hinge loss, the critic steps twice."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm

CODE, CLASSES, WIDTH, BATCH, STEPS = 96, 10, 64, 80, 5


class Conditional(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.scale = nn.BatchNorm2d(width, affine=False), nn.Embedding(CLASSES, 2 * width)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        gain, bias = self.scale(y)[:, :, None, None].chunk(2, 1)
        return self.norm(x) * (1 + gain) + bias


class Maker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Linear(CODE, 8 * WIDTH * 16)
        pairs = ((8, 4), (4, 2), (2, 1))
        self.convs = nn.ModuleList(nn.Conv2d(a * WIDTH, b * WIDTH, 3, padding=1) for a, b in pairs)
        self.norms = nn.ModuleList(Conditional(b * WIDTH) for _, b in pairs)
        self.image = nn.Conv2d(WIDTH, 3, 1)

    def forward(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = self.start(z).view(-1, 8 * WIDTH, 4, 4)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(F.interpolate(x, scale_factor=2)), y).relu()
        return self.image(x).tanh()


class Critic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [3, WIDTH, 2 * WIDTH, 4 * WIDTH]
        self.convs = nn.Sequential(
            *(
                nn.Sequential(spectral_norm(nn.Conv2d(a, b, 4, 2, 1)), nn.SiLU())
                for a, b in zip(widths, widths[1:], strict=False)
            )
        )
        self.last, self.kind = spectral_norm(nn.Linear(4 * WIDTH, 1)), nn.Embedding(CLASSES, 4 * WIDTH)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = self.convs(x).sum((2, 3))
        return self.last(x).flatten() + (x * self.kind(y)).sum(1)


torch.manual_seed(403)
maker, critic = Maker().cuda(), Critic().cuda()
shown = torch.randn(32, CODE, device="cuda")
for_maker = torch.optim.Adam(maker.parameters(), lr=1e-4, betas=(0.0, 0.9))
for_critic = torch.optim.Adam(critic.parameters(), lr=4e-4, betas=(0.0, 0.9))
for _ in range(STEPS):
    for _ in range(2):
        real, y = (torch.rand(BATCH, 3, 32, 32) * 2 - 1).cuda(), torch.randint(0, CLASSES, (BATCH,)).cuda()
        fake = maker(torch.randn(BATCH, CODE, device="cuda"), y).detach()
        gap = F.relu(1 - critic(real, y)).mean() + F.relu(1 + critic(fake, y)).mean()
        for_critic.zero_grad()
        gap.backward()
        for_critic.step()
    loss = -critic(maker(torch.randn(BATCH, CODE, device="cuda"), y), y).mean()
    for_maker.zero_grad()
    loss.backward()
    for_maker.step()
with torch.no_grad():
    pictures = maker(shown, y[:32])
print(f"gap {gap.item():.3f}, maker {loss.item():.3f}, shown {pictures.mean().item():.3f}")
