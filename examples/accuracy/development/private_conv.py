"""Opacus on a convolutional net: per-sample gradients, Poisson sampling, physical batches, evaluation every epoch."""

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(16, after), nn.Tanh(), nn.MaxPool2d(2))


torch.manual_seed(11)
data = TensorDataset(torch.rand(1024, 3, 32, 32), torch.randint(0, 10, (1024,)))
model = nn.Sequential(block(3, 64), block(64, 128), block(128, 256), nn.Flatten(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model, optimizer, loader = PrivacyEngine().make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(data, batch_size=256),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    noise_generator=torch.Generator("cuda").manual_seed(0),
)
for epoch in range(2):
    model.train()
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=64, optimizer=optimizer) as batches:
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in DataLoader(data, batch_size=256))
    print(f"epoch {epoch}: loss {loss.item():.3f}, {right} right")
