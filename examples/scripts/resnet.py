"""Trains torchvision's ResNet-50 on synthetic images: automatic mixed precision, a gradient scaler, channels-last."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn
from torchvision.models import resnet50


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = parse()
    torch.manual_seed(args.seed)
    device = torch.device("cuda")
    model = resnet50(num_classes=args.classes).to(device, memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
    scaler = torch.amp.GradScaler("cuda")

    images = torch.rand(args.batch_size, 3, args.image_size, args.image_size).pin_memory()
    labels = torch.randint(0, args.classes, (args.batch_size,)).pin_memory()
    model.train()
    for step in range(args.steps):
        began = time.perf_counter()
        x = images.to(device, non_blocking=True).to(memory_format=torch.channels_last)
        y = labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, {1e3 * (time.perf_counter() - began):.0f} ms")


if __name__ == "__main__":
    main()
