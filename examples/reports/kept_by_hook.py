# Source: https://github.com/jacobgil/pytorch-grad-cam/issues/71
# The report says, without a figure: runs out of memory.
# dpsight should show: the outputs that a forward hook appends to the script's list.
import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda().eval()
kept = []
for layer in net:
    layer.register_forward_hook(lambda module, args, output: kept.append(output))
with torch.no_grad():
    for _ in range(12):
        net(torch.randn(8192, 1024, device="cuda"))
