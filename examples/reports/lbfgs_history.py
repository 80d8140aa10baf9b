# Source: https://github.com/pytorch/pytorch/pull/539
# The report says, without a figure: a very memory intensive optimizer.
# dpsight should show: the optimizer's history of directions and steps.
import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(4)]).cuda()
opt = torch.optim.LBFGS(net.parameters(), history_size=10, max_iter=4)
x = torch.randn(64, 2048, device="cuda")


def closure():
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    return loss


for _ in range(6):
    opt.step(closure)
