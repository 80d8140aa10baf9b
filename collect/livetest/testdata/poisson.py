"""Trains with batches of varying size, as in newcomers' scripts: poisson.py MODE SEED [tagged].

The modes are Opacus's grad_sample_modes (hooks, functorch, ew, ghost), also with "-physical" for BatchMemoryManager
and "-conv" for a convolutional net; "plain": sequences of varying length, without privacy; and "prefetch": batches
that are made one step early, in so many steps that most are bare. With "tagged" every step is instrumented. The test
compares bare steps with the same steps of such a run.
"""

import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

mode, seed = sys.argv[1], int(sys.argv[2])
if "tagged" in sys.argv:
    from dpsight.recorder import recorder

    recorder.settings.warmup = 1 << 30
warnings.simplefilter("ignore")
torch.manual_seed(seed)
criterion = nn.CrossEntropyLoss()


class Sentences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 128)
        self.layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        self.head = nn.Linear(128, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embedding(x))).flatten(0, 1)


def plain() -> None:
    model = Sentences().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(24):
        x = torch.randint(1000, (8, int(torch.randint(20, 200, ()))))
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), x.flatten().cuda())
        loss.backward()
        optimizer.step()


def prefetch() -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stream = torch.cuda.Stream()

    def load() -> tuple[torch.Tensor, torch.Tensor]:
        n = int(torch.randint(20, 200, ()))
        with torch.cuda.stream(stream):
            return torch.randn(n, 256).cuda(non_blocking=True), torch.randint(10, (n,)).cuda(non_blocking=True)

    ahead = load()
    for _ in range(70):
        torch.cuda.current_stream().wait_stream(stream)
        x, y = ahead
        ahead = load()
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def private() -> None:
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    way, *more = mode.split("-")
    if "conv" in more:
        model = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(1024, 10),
        ).cuda()
        inputs = torch.randn(1500, 3, 32, 32)
    else:
        model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
        inputs = torch.randn(1500, 256)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(inputs, torch.randint(0, 10, (1500,))), batch_size=64)
    model, optimizer, *loss_function, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        criterion=criterion,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=True,
        grad_sample_mode=way,
    )
    loss_function = loss_function[0] if loss_function else criterion

    def train(batches) -> None:
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_function(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()

    if "physical" in more:
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=16, optimizer=optimizer) as batches:
            train(batches)
    else:
        train(loader)


{"plain": plain, "prefetch": prefetch}.get(mode, private)()
