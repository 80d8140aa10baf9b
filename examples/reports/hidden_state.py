# Source: https://github.com/pytorch/pytorch/issues/2198
# The report says, without a figure: full after a sequence of 10,000.
# dpsight should show: activations: the hidden state is never detached, so the graph of every batch lives.
import torch
from torch import nn

cell = nn.RNNCell(512, 2048).cuda()
hidden = torch.zeros(2048, 2048, device="cuda")
for _ in range(40):
    hidden = cell(torch.randn(2048, 512, device="cuda"), hidden)
