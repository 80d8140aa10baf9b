"""A convolutional variational autoencoder: strided and transposed convolutions, batch norm, KL, a validation pass."""

import torch
from torch import nn
from torch.nn import functional as F

SIZE, CODE, BATCH, STEPS = 128, 192, 48, 6


def down(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(0.2))


def up(before: int, after: int) -> nn.Sequential:
    deconv = nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False)
    return nn.Sequential(deconv, nn.BatchNorm2d(after), nn.ReLU(), nn.Conv2d(after, after, 3, padding=1), nn.ReLU())


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [3, 64, 128, 256, 384]
        self.encoder = nn.Sequential(*(down(a, b) for a, b in zip(widths, widths[1:], strict=False)))
        self.code = nn.Linear(384 * (SIZE // 16) ** 2, 2 * CODE)
        self.start = nn.Linear(CODE, 384 * (SIZE // 16) ** 2)
        self.decoder = nn.Sequential(*(up(a, b) for a, b in zip([384, 256, 128, 96], [256, 128, 96, 64], strict=True)))
        self.image = nn.Conv2d(64, 3, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, spread = self.code(self.encoder(x).flatten(1)).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (spread / 2).exp()
        return self.image(self.decoder(self.start(z).view(len(x), 384, SIZE // 16, SIZE // 16))), mean, spread


torch.manual_seed(301)
net = VAE().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
for _ in range(STEPS):
    x = torch.rand(BATCH, 3, SIZE, SIZE).cuda()
    picture, mean, spread = net(x)
    divergence = -0.5 * (1 + spread - mean.square() - spread.exp()).sum(1).mean()
    loss = F.binary_cross_entropy_with_logits(picture, x, reduction="sum") / BATCH + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    picture, _, _ = net(torch.rand(2 * BATCH, 3, SIZE, SIZE).cuda())
print(f"loss {loss.item():.1f}, mean {picture.mean().item():.3f}")
