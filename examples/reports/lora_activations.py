# Source: https://github.com/huggingface/peft/issues/525
# The report says, without a figure: out of memory though few parameters train.
# dpsight should show: activations: freezing the weights does not free what the adapters and non-linear layers save.
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(1024, 1024).requires_grad_(False)
        self.down, self.up = nn.Linear(1024, 8, bias=False), nn.Linear(8, 1024, bias=False)

    def forward(self, x):
        return nn.functional.gelu(self.base(x) + self.up(self.down(x)))


net = nn.Sequential(*[Adapted() for _ in range(12)]).cuda()
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad])
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(16384, 1024, device="cuda")).mean().backward()
    opt.step()
