"""Opacus under torchrun: an MLP-Mixer on two ranks, its data-parallel wrapper, Poisson sampling, SGD with momentum."""

import os

import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch import distributed, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

PATCHES, WIDTH, LAYERS, CLASSES, BATCH, EPOCHS = 64, 384, 6, 10, 128, 2


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.across = nn.Sequential(nn.Linear(PATCHES, 4 * PATCHES), nn.GELU(), nn.Linear(4 * PATCHES, PATCHES))
        self.along = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.across(self.norm_1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm_2(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, 4)
        self.mixers = nn.Sequential(*(Mixer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.mixers(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
distributed.init_process_group("nccl")
torch.manual_seed(113)
data = TensorDataset(torch.rand(640, 3, 32, 32), torch.randint(0, CLASSES, (640,)))
model = DifferentiallyPrivateDistributedDataParallel(Net().cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
model, optimizer, loader = PrivacyEngine().make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(data, batch_size=BATCH),
    noise_multiplier=1.1,
    max_grad_norm=1.0,
)
for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if distributed.get_rank() == 0:
            print(f"epoch {epoch}, step {step}: {len(x)} samples, loss {loss.item():.3f}")
distributed.destroy_process_group()
