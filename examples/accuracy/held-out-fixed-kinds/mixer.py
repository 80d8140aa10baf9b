"""An MLP-Mixer in fp32, stochastic depth decided on the host, AdamW with a schedule: nothing of the device is read."""

import random

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, TOKENS, LAYERS, CLASSES, BATCH, STEPS = 768, 196, 12, 1000, 48, 8


class Mix(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.tokens = nn.Sequential(nn.Linear(TOKENS, 384), nn.GELU(), nn.Linear(384, TOKENS))
        self.channels = nn.Sequential(nn.Linear(WIDTH, 3072), nn.GELU(), nn.Dropout(0.1), nn.Linear(3072, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.tokens(self.norm_1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm_2(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(3 * 16 * 16, WIDTH)
        self.layers = nn.ModuleList(Mix() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(F.unfold(x, 16, stride=16).transpose(1, 2))
        for i, layer in enumerate(self.layers):
            if not self.training or random.random() > 0.2 * i / LAYERS:
                x = layer(x)
        return self.head(self.norm(x).mean(1))


torch.manual_seed(303)
random.seed(303)
net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=STEPS)
for _ in range(STEPS):
    x, y = torch.rand(BATCH, 3, 224, 224).cuda(), torch.randint(0, CLASSES, (BATCH,)).cuda()
    loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 1.0)
    optimizer.step()
    schedule.step()
print(f"{STEPS} steps")
