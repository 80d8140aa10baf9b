"""A script that trains on the CPU and never touches CUDA."""

import torch
from facts import Net, say

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 64)).square().mean().backward()
    optimizer.step()
say(3)
