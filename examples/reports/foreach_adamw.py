# Source: https://github.com/pytorch/pytorch/issues/97712
# The report says: sizeof(parameters) more than without foreach.
# dpsight should show: weights 20 %, gradients 20 %, state 40 %, and the update's temporaries 20 % of the peak.
import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
opt = torch.optim.AdamW(net.parameters(), foreach=True)
for _ in range(3):
    net(torch.randn(8, 4096, device="cuda")).sum().backward()
    opt.step()
    opt.zero_grad()
