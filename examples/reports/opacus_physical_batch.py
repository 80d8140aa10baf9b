# Source: https://github.com/meta-pytorch/opacus/issues/561
# The report says, without a figure: the memory may not hold all per-sample gradients.
# dpsight should show: per-sample gradients: batch times the parameters.
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn

net = GradSampleModule(nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda())
opt = DPOptimizer(
    torch.optim.SGD(net.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=64
)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(64, 1024, device="cuda")).mean().backward()
    opt.step()
