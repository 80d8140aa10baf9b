# Source: https://github.com/pytorch/pytorch/issues/7415
# The report says: approximately double the memory.
# dpsight should show: a third is the loaded file's tensors, which the script keeps beside weights and gradients.
import io

import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
checkpoint = torch.load(file, map_location="cuda")
net.load_state_dict(checkpoint)
opt = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4096, device="cuda")).sum().backward()
    opt.step()
