"""Opacus with ghost clipping on a convolutional net, group norm, physical batches, fp32: nothing of the device read."""

import warnings

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
SIZE, CLASSES, BATCH, PHYSICAL = 48, 20, 96, 32


def stage(before: int, after: int) -> nn.Sequential:
    conv = nn.Conv2d(before, after, 3, padding=1)
    return nn.Sequential(conv, nn.GroupNorm(16, after), nn.SiLU(), nn.AvgPool2d(2))


torch.manual_seed(305)
net = nn.Sequential(
    stage(3, 64), stage(64, 128), stage(128, 256), nn.Flatten(), nn.Linear(256 * (SIZE // 8) ** 2, 512), nn.SiLU()
)
net.append(nn.Linear(512, CLASSES))
net.cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
data = TensorDataset(torch.rand(384, 3, SIZE, SIZE), torch.randint(0, CLASSES, (384,)))
loader = DataLoader(data, batch_size=BATCH)
engine = PrivacyEngine()
net, optimizer, criterion, loader = engine.make_private(
    module=net,
    optimizer=optimizer,
    criterion=nn.CrossEntropyLoss(),
    data_loader=loader,
    noise_multiplier=1.1,
    max_grad_norm=1.0,
    poisson_sampling=False,
    grad_sample_mode="ghost",
)
for _ in range(2):
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=PHYSICAL, optimizer=optimizer) as batches:
        for x, y in batches:
            optimizer.zero_grad()
            loss = criterion(net(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
print(f"epsilon {engine.get_epsilon(1e-5):.2f}")
