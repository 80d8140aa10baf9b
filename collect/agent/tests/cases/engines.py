"""Trains twenty steps with marks on the autograd engine's thread: `phase` names a phase in a hook; `recompute` runs
out of memory while it recomputes step 18; `other` updates the parameters on a second device's thread, after 14 passes
on the first."""

import sys

import dpsight
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

what = sys.argv[1]


class Block(nn.Module):
    failing = False

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if self.failing and torch._C._current_graph_task_id() != -1:
            torch.empty(1 << 45, device="cuda")
        return y.relu()


model = Block().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
if what == "other":
    for _ in range(14):
        model(torch.ones(8, 64, device="cuda")).sum().backward()
    model = Block().cuda(1)
    own = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}


def hook(p: torch.Tensor) -> None:
    if what == "phase":
        with dpsight.phase("compress"):
            p.grad.mul_(0.5)
    elif what == "other":
        own[p].step()
        own[p].zero_grad()


if what != "recompute":
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)
for i in range(20):
    model.failing = what == "recompute" and i == 18
    x = torch.ones(8, 64, device=model.linear.weight.device, requires_grad=True)
    try:
        (checkpoint(model, x, use_reentrant=False) if what == "recompute" else model(x)).sum().backward()
    except torch.OutOfMemoryError:
        print("out of memory")
    if what != "other":
        optimizer.step()
        optimizer.zero_grad()
