# Source: https://github.com/pytorch/pytorch/issues/1840
# The report says, without a figure: memory grows until it is full.
# dpsight should show: activations: one backward at the end, so the graphs of all batches live until then.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(1024, 4096), nn.Tanh(), nn.Linear(4096, 1)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    total = 0
    for _ in range(16):
        total += net(torch.randn(4096, 1024, device="cuda")).mean()
    opt.zero_grad()
    total.backward()
    opt.step()
