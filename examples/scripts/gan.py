"""Trains a DCGAN on synthetic 64 by 64 images: two networks, two optimizers, fp32."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class Generator(nn.Module):
    """Noise to images: transposed convolutions, each doubling the side."""

    def __init__(self, noise: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = noise
        for i, channels in enumerate((8 * width, 4 * width, 2 * width, width)):
            stride, padding = (1, 0) if i == 0 else (2, 1)
            layers.append(nn.ConvTranspose2d(before, channels, 4, stride, padding, bias=False))
            layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
            before = channels
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(before, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.main(noise)


class Discriminator(nn.Module):
    """Images to one logit each: convolutions, each halving the side."""

    def __init__(self, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for i in (1, 2, 4):
            layers.append(nn.Conv2d(i * width, 2 * i * width, 4, 2, 1, bias=False))
            layers += [nn.BatchNorm2d(2 * i * width), nn.LeakyReLU(0.2, inplace=True)]
        self.main = nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.main(images).flatten()


def initialise(module: nn.Module) -> None:
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--noise", type=int, default=100, help="size of the generator's input")
    parser.add_argument("--width", type=int, default=128, help="channels of the widest images")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = parse()
    torch.manual_seed(args.seed)
    device = torch.device("cuda")
    generator, discriminator = Generator(args.noise, args.width).to(device), Discriminator(args.width).to(device)
    generator.apply(initialise)
    discriminator.apply(initialise)
    criterion = nn.BCEWithLogitsLoss()
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=args.lr, betas=(0.5, 0.999))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=args.lr, betas=(0.5, 0.999))
    real_label, fake_label = torch.ones(args.batch_size, device=device), torch.zeros(args.batch_size, device=device)
    images = 2 * torch.rand(args.batch_size, 3, 64, 64) - 1

    for step in range(args.steps):
        began = time.perf_counter()
        real = images.to(device)
        discriminator.zero_grad()
        loss_real = criterion(discriminator(real), real_label)
        loss_real.backward()
        fake = generator(torch.randn(args.batch_size, args.noise, 1, 1, device=device))
        loss_fake = criterion(discriminator(fake.detach()), fake_label)
        loss_fake.backward()
        optimizer_d.step()

        generator.zero_grad()
        loss_g = criterion(discriminator(fake), real_label)
        loss_g.backward()
        optimizer_g.step()
        if step % 10 == 0:
            loss_d, milliseconds = loss_real.item() + loss_fake.item(), 1e3 * (time.perf_counter() - began)
            print(f"step {step}: discriminator {loss_d:.4f}, generator {loss_g.item():.4f}, {milliseconds:.0f} ms")


if __name__ == "__main__":
    main()
