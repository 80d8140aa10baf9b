# Source: https://github.com/meta-pytorch/opacus/pull/219
# The report says, without a figure: the sum of clipped gradients replaces p.grad.
# dpsight should show: per-sample gradients of a physical batch of 4, and one sum of the parameters' size.
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn

net = GradSampleModule(nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(4)]).cuda())
opt = DPOptimizer(
    torch.optim.SGD(net.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=16
)
for step in range(8):
    opt.signal_skip_step(do_skip=step % 4 != 3)
    net(torch.randn(4, 4096, device="cuda")).mean().backward()
    opt.step()
    opt.zero_grad()
