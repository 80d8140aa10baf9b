"""Speech recognition: convolutions over mel frames, a packed bidirectional GRU, CTC on utterances of many lengths."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

MELS, WIDTH, LETTERS, BATCH, STEPS = 80, 512, 29, 32, 6


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, 32, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(32, 64, (11, 5), (1, 2), (5, 2)), nn.BatchNorm2d(64), nn.Hardtanh(0, 20, inplace=True),
        )  # fmt: skip
        self.gru = nn.GRU(64 * MELS // 4, WIDTH, 3, batch_first=True, bidirectional=True, dropout=0.1)
        self.head = nn.Sequential(nn.LayerNorm(2 * WIDTH), nn.Linear(2 * WIDTH, LETTERS))

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.front(frames[:, None]).transpose(1, 2).flatten(2)
        lengths = (lengths + 1) // 2
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return F.log_softmax(self.head(hidden), -1).transpose(0, 1), lengths


torch.manual_seed(108)
net = Net().cuda()
criterion = nn.CTCLoss(zero_infinity=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=STEPS)
for step in range(STEPS):
    lengths = torch.randint(400, 1601, (BATCH,))
    frames = torch.randn(BATCH, int(lengths.max()), MELS)
    frames[:, :, 20:30] = 0
    said = lengths // 16
    letters = torch.randint(1, LETTERS, (BATCH, int(said.max())))
    scores, heard = net(frames.cuda(), lengths)
    loss = criterion(scores, letters.cuda(), heard.cuda(), said.cuda())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 400)
    optimizer.step()
    schedule.step()
    print(f"step {step}: loss {loss.item():.3f}")
