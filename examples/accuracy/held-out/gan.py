"""A Wasserstein GAN: transposed convolutions, a critic with a gradient penalty differentiated twice, two optimizers."""

import torch
from torch import nn

CODE, WIDTH, BATCH, CRITICS, STEPS = 128, 96, 128, 3, 4


def generator() -> nn.Sequential:
    layers: list[nn.Module] = [nn.ConvTranspose2d(CODE, 8 * WIDTH, 4), nn.BatchNorm2d(8 * WIDTH), nn.ReLU(True)]
    for before, after in ((8, 4), (4, 2), (2, 1)):
        layers += [nn.ConvTranspose2d(before * WIDTH, after * WIDTH, 4, 2, 1, bias=False)]
        layers += [nn.BatchNorm2d(after * WIDTH), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1), nn.Tanh())


def judge() -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2)]
    for before, after in ((1, 2), (2, 4), (4, 8)):
        layers += [nn.Conv2d(before * WIDTH, after * WIDTH, 4, 2, 1), nn.InstanceNorm2d(after * WIDTH, affine=True)]
        layers += [nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(8 * WIDTH, 1, 4), nn.Flatten(0))


def weights(module: nn.Module) -> None:
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)


torch.manual_seed(104)
maker, critic = generator().apply(weights).cuda(), judge().apply(weights).cuda()
for_maker = torch.optim.Adam(maker.parameters(), lr=1e-4, betas=(0.0, 0.9))
for_critic = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
fixed = torch.randn(64, CODE, 1, 1, device="cuda")
for step in range(STEPS):
    for _ in range(CRITICS):
        real = (torch.rand(BATCH, 3, 64, 64) * 2 - 1).cuda()
        fake = maker(torch.randn(BATCH, CODE, 1, 1, device="cuda")).detach()
        mix = torch.rand(BATCH, 1, 1, 1, device="cuda")
        between = (mix * real + (1 - mix) * fake).requires_grad_(True)
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((slope.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
        gap = critic(fake).mean() - critic(real).mean()
        for_critic.zero_grad()
        (gap + 10 * penalty).backward()
        for_critic.step()
    loss = -critic(maker(torch.randn(BATCH, CODE, 1, 1, device="cuda"))).mean()
    for_maker.zero_grad()
    loss.backward()
    for_maker.step()
    with torch.no_grad():
        shown = maker(fixed).cpu()
    print(f"step {step}: gap {gap.item():.3f}, maker {loss.item():.3f}, shown {shown.mean().item():.3f}")
