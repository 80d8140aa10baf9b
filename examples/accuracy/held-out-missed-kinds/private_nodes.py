"""Opacus on two nodes: its data-parallel wrapper around a text classifier, per-sample gradients, Adam, even batches."""

import os
import warnings

import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch import distributed, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

warnings.filterwarnings("ignore")
VOCABULARY, WIDTH, LENGTH, CLASSES, BATCH, EPOCHS = 3000, 256, 64, 8, 48, 2


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.body = nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 3, padding=1), nn.GroupNorm(8, WIDTH), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, CLASSES))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.tokens(ids).transpose(1, 2)).amax(2))


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
distributed.init_process_group("nccl")
torch.manual_seed(405)
data = TensorDataset(torch.randint(0, VOCABULARY, (384, LENGTH)), torch.randint(0, CLASSES, (384,)))
model = DifferentiallyPrivateDistributedDataParallel(Classifier().cuda())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model, optimizer, loader = PrivacyEngine().make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data, seed=405)),
    noise_multiplier=0.8,
    max_grad_norm=1.0,
    poisson_sampling=False,
)
for _ in range(EPOCHS):
    for ids, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
if distributed.get_rank() == 0:
    print(f"loss {loss.item():.3f}")
distributed.destroy_process_group()
