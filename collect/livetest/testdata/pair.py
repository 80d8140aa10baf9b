"""Trains a student model with two teacher models of the same class: pair.py."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 512), nn.Linear(512, 8)
        self.register_buffer("shift", torch.zeros(700))

    def forward(self, x):
        return self.down(F.gelu(self.up(x))) + self.shift[:8]


student, teachers, head = Net().cuda(), [Net().cuda(), Net().cuda()], nn.Sequential(nn.Linear(8, 8)).cuda()
optimizer = torch.optim.SGD([*student.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    x = torch.ones(16, 64).cuda()
    optimizer.zero_grad()
    out = head(student(x))
    for teacher in teachers:
        out = out - teacher(x)
    out.square().mean().backward()
    optimizer.step()
