"""Converts a model that returns its own parameter, by swapping parameters, in each step. Prints the resulting dtype or
the error."""

import torch
from torch import nn


class Prompt(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = nn.Parameter(torch.ones(3, device="cuda"))

    def forward(self):
        return self.prompt


model, prompt = nn.Linear(4, 4).cuda(), Prompt()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.__future__.set_swap_module_params_on_conversion(True)
for i in range(6):
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    prompt()
    try:
        prompt.half() if i % 2 else prompt.float()
        model.float()
        print(i, prompt.prompt.dtype)
    except RuntimeError as error:
        print(i, error, error.__cause__)
print([model.weight._post_accumulate_grad_hooks])
