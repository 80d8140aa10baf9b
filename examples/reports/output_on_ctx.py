# Source: https://github.com/pytorch/pytorch/issues/25340
# The report says, without a figure: memory quickly spirals out of control.
# dpsight should show: activations: the output on ctx closes a cycle, so autograd's nodes keep it after backward.
import torch
from torch import nn


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x * 2
        return ctx.y

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


net = nn.Linear(1024, 4096).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(12):
    opt.zero_grad()
    Double.apply(net(torch.randn(4096, 1024, device="cuda"))).mean().backward()
    opt.step()
