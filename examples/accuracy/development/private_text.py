"""Opacus on a text classifier: embeddings, a DP LSTM, variable lengths padded by batch."""

import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8000, 128, padding_idx=0)
        self.lstm = DPLSTM(128, 256, batch_first=True)
        self.head = nn.Linear(256, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(self.embedding(ids))
        return self.head(hidden.mean(1))


def collate(rows: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    if not rows:
        return torch.zeros(0, 8, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    return pad_sequence([ids for ids, _ in rows], batch_first=True), torch.tensor([label for _, label in rows])


torch.manual_seed(12)
lengths = torch.randint(8, 65, (512,)).tolist()
data = [(torch.randint(1, 8000, (n,)), i % 5) for i, n in enumerate(lengths)]
model = Classifier().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = PrivacyEngine().make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(data, batch_size=64, collate_fn=collate, shuffle=True),
    noise_multiplier=0.8,
    max_grad_norm=1.0,
    poisson_sampling=False,
)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3f}")
