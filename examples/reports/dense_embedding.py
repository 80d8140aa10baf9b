# Source: https://github.com/pytorch/pytorch/issues/109282
# The report says: 186 GB more in backward: the table once more.
# dpsight should show: half is the table, half its dense gradient.
import torch
from torch import nn

table = nn.Embedding(1_000_000, 256).cuda()
opt = torch.optim.SGD(table.parameters(), lr=0.1, foreach=False)
for _ in range(3):
    opt.zero_grad()
    table(torch.randint(0, 1_000_000, (5000,), device="cuda")).sum().backward()
    opt.step()
