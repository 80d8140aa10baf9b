# Source: https://github.com/pytorch/pytorch/issues/9439
# The report says: SGD trains batch 8 of VGG-16, Adam only batch 4.
# dpsight should show: half of the peak is Adam's state, made by the first step.
import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
opt = torch.optim.Adam(net.parameters(), foreach=False)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4096, device="cuda")).sum().backward()
    opt.step()
