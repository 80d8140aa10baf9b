"""Runs out of memory on any GPU of 16 GiB or more: beside a memory bank that takes most of it, the third batch is too
large for the layer "head". oom.py die ends there; oom.py recover goes on with smaller batches."""

from __future__ import annotations

import sys

import torch
from torch import nn

FEATURES, CLASSES = 256, 65536


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU())
        self.head = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Bank(nn.Module):
    """What a method with memory keeps of what it has seen."""

    def __init__(self, **sizes: int) -> None:
        super().__init__()
        for name, size in sizes.items():
            self.register_buffer(name, torch.empty(size, dtype=torch.uint8, device="cuda"))


def main() -> None:
    recover = {"die": False, "recover": True}[sys.argv[1]]
    torch.manual_seed(0)
    # In steps of 2 GiB: what a context takes differs by some MiB from one driver to the next.
    free = torch.cuda.mem_get_info()[0] >> 31 << 31

    def share(percent: int) -> int:
        return free * percent // 100 >> 20 << 20

    def batch(percent: int) -> torch.Tensor:
        """A batch whose logits take that share of the memory."""
        return torch.randn(share(percent) // (4 * CLASSES), FEATURES, device="cuda")

    net = Net().cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    with torch.no_grad():
        net(batch(8))
    # The evaluation's logits are free again, and cached. The labels take a part of them, so that the rest cannot be
    # given back to the device.
    bank = Bank(labels=share(2), keys=share(45), values=share(35))
    for percent in (1, 1, 30, 1):
        x = batch(percent)
        try:
            loss = net(x).square().mean()
        except torch.OutOfMemoryError:
            if not recover:
                raise
            x = batch(1)
            loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"{len(list(bank.buffers()))} buffers were kept throughout")


main()
