"""Prints, for each parameter in a bare step, its dictionary of hooks, from which the agent has removed its own. With
"no", torch lacks the function by which the agent removes the dictionary."""

import sys

import torch
from torch import nn

if sys.argv[1] == "no":
    from dpsight import torch_compat

    torch_compat._set_hooks = lambda: None  # type: ignore[assignment]

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for _ in range(12):
    hooks = [p._post_accumulate_grad_hooks for p in model.parameters()]
    seen.append([None if h is None else dict(h) for h in hooks])
    optimizer.zero_grad()
    model(torch.randn(4, 8, device="cuda")).sum().backward()
    optimizer.step()
bare = [hooks for hooks in seen[4:] if not any(hooks)]  # in an instrumented step the agent's hook is set
print(*(h for hooks in bare for h in hooks))
