"""A recommender: large embedding bags with sparse gradients under SparseAdam, dense towers under Adagrad."""

import torch
from torch import nn
from torch.nn import functional as F

ROWS, WIDTH, TABLES, BATCH, BAG, STEPS = 500_000, 64, 8, 4096, 20, 6


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=True) for _ in range(TABLES))
        self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, WIDTH), nn.ReLU())
        crossed = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(nn.Linear(WIDTH + crossed, 512), nn.ReLU(), nn.Linear(512, 1))
        self.register_buffer("pairs", torch.tril_indices(TABLES + 1, TABLES + 1, -1))

    def forward(self, dense: torch.Tensor, bags: torch.Tensor) -> torch.Tensor:
        low = self.bottom(dense)
        all_of = torch.stack([low, *(table(bag) for table, bag in zip(self.tables, bags, strict=True))], dim=1)
        product = all_of @ all_of.transpose(1, 2)
        return self.top(torch.cat([low, product[:, self.pairs[0], self.pairs[1]]], dim=1)).squeeze(1)


torch.manual_seed(7)
model = Model().cuda()
sparse = torch.optim.SparseAdam(model.tables.parameters(), lr=1e-3)
dense = torch.optim.Adagrad([*model.bottom.parameters(), *model.top.parameters()], lr=1e-2)
for step in range(STEPS):
    x, bags = torch.rand(BATCH, 13).cuda(), torch.randint(0, ROWS, (TABLES, BATCH, BAG)).cuda()
    clicked = (torch.rand(BATCH) < 0.2).float().cuda()
    loss = F.binary_cross_entropy_with_logits(model(x, bags), clicked)
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print(f"step {step}: loss {loss.item():.3f}")
