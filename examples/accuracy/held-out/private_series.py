"""Opacus on time series: an LSTM replaced by the DP LSTM, Poisson sampling, noise set by a budget, Adam."""

import torch
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

CHANNELS, WIDTH, LENGTH, AHEAD, SERIES, BATCH, EPOCHS = 8, 192, 72, 12, 1024, 192, 2


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.norm = nn.Linear(CHANNELS, WIDTH), nn.LayerNorm(WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(WIDTH, AHEAD * CHANNELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(F.relu(self.norm(self.into(x))))
        return self.head(hidden[:, -1]).unflatten(1, (AHEAD, CHANNELS))


torch.manual_seed(112)
waves = torch.randn(SERIES, LENGTH + AHEAD, CHANNELS).cumsum(1)
training, testing = TensorDataset(waves[:, :LENGTH], waves[:, LENGTH:]), waves[:256]
model = ModuleValidator.fix(Forecaster()).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(training, batch_size=BATCH, pin_memory=True),
    target_epsilon=8.0,
    target_delta=1e-4,
    epochs=EPOCHS,
    max_grad_norm=0.5,
)
for epoch in range(EPOCHS):
    model.train()
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.huber_loss(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = F.l1_loss(model(testing[:, :LENGTH].cuda()), testing[:, LENGTH:].cuda())
    print(f"epoch {epoch}: loss {loss.item():.3f}, error {error.item():.3f}, spent {engine.get_epsilon(1e-4):.2f}")
