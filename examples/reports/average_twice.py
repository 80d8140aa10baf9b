# Source: https://github.com/mosaicml/composer/pull/1941
# The report says: 2x the model's parameters, 1x after the change.
# dpsight should show: weights of two models, gradients, and the clones in the script's dictionary, a quarter each.
import copy

import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
average = copy.deepcopy(net)
clones = {name: value.detach().clone() for name, value in net.named_parameters()}
opt = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4096, device="cuda")).sum().backward()
    opt.step()
