# Source: https://github.com/pytorch/pytorch/issues/4685
# The report says, without a figure: saturates in evaluation.
# dpsight should show: the computed weight is held for backward, as large as the parameter, and so is its gradient.
import torch
from torch import nn

net = nn.utils.parametrizations.weight_norm(nn.Linear(8192, 8192)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 8192, device="cuda")).mean().backward()
    opt.step()
