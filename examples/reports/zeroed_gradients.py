# Source: https://github.com/facebookresearch/detectron2/pull/4905
# The report says, without a figure: freeing after forward saves nothing.
# dpsight should show: gradients of the step before stay through forward: as many bytes as the weights.
import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
for _ in range(3):
    loss = net(torch.randn(8192, 4096, device="cuda")).mean()
    opt.zero_grad(set_to_none=False)
    loss.backward()
    opt.step()
