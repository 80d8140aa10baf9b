"""Opacus: private.py hooks|ew|functorch|ghost [physical batch]."""

import sys
import warnings

import torch
from facts import Net, say
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
mode = sys.argv[1]
model, criterion = Net().cuda(), torch.nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(64, 64), torch.randint(0, 7, (64,))), batch_size=16)
made = PrivacyEngine().make_private(
    module=model,
    optimizer=optimizer,
    criterion=criterion,
    data_loader=loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=False,
    grad_sample_mode=mode,
)
if mode == "ghost":
    model, optimizer, criterion, loader = made
else:
    model, optimizer, loader = made


def epoch(batches):
    for x, y in batches:
        optimizer.zero_grad()
        criterion(model(x.cuda()), y.cuda()).backward()
        optimizer.step()


if len(sys.argv) > 2:
    size = int(sys.argv[2])
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=size, optimizer=optimizer) as physical:
        epoch(physical)
else:
    epoch(loader)
say(4)
