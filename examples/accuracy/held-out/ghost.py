"""Opacus with ghost clipping on a transformer encoder: norms without per-sample gradients, Poisson sampling, AdamW."""

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH, BATCH, CLASSES, EPOCHS = 16000, 512, 6, 8, 256, 48, 20, 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm_1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.norm_2(x))))


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        angle = torch.arange(LENGTH)[:, None] * 1e4 ** -(torch.arange(WIDTH // 2) / (WIDTH // 2))
        self.register_buffer("positions", torch.cat([angle.sin(), angle.cos()], 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


torch.manual_seed(111)
data = TensorDataset(torch.randint(0, VOCABULARY, (240, LENGTH)), torch.randint(0, CLASSES, (240,)))
model = Classifier().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
model, optimizer, criterion, loader = PrivacyEngine().make_private(
    module=model,
    optimizer=optimizer,
    criterion=nn.CrossEntropyLoss(),
    data_loader=DataLoader(data, batch_size=BATCH),
    noise_multiplier=0.9,
    max_grad_norm=1.0,
    grad_sample_mode="ghost",
)
for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}, step {step}: {len(x)} samples, loss {loss.item():.3f}")
