"""A two-layer LSTM language model on cuDNN: hidden state carried over, truncated backpropagation, clipped gradients."""

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LENGTH, BATCH, STEPS = 10000, 650, 70, 64, 8


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.rnn = nn.LSTM(WIDTH, WIDTH, num_layers=2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: torch.Tensor, state: tuple[torch.Tensor, ...] | None) -> tuple[torch.Tensor, tuple]:
        out, state = self.rnn(F.dropout(self.embedding(ids), 0.5, self.training), state)
        return self.head(out), state


torch.manual_seed(5)
model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=20.0)
state = None
for step in range(STEPS):
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)).cuda()
    if state is not None:
        state = tuple(s.detach() for s in state)
    logits, state = model(ids[:, :-1], state)
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(f"step {step}: perplexity {loss.exp().item():.1f}")
