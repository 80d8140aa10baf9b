# Source: https://github.com/unslothai/unsloth/issues/3700
# The report says, without a figure: a massive grab of memory.
# dpsight should show: logits and what the loss makes of them: saved log-softmax, and gradients that flow.
import torch
from torch import nn

net = nn.Linear(512, 65536, bias=False, dtype=torch.bfloat16).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    logits = net(torch.randn(4096, 512, device="cuda", dtype=torch.bfloat16))
    labels = torch.randint(0, 65536, (4096,), device="cuda")
    loss = nn.functional.cross_entropy(logits.float(), labels)
    loss.backward()
    opt.step()
