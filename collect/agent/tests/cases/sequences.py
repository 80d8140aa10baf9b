"""Two optimizers in an order given as letters: sequences.py abab. c stands for both at once."""

import sys

import torch
from torch import nn

first, second = nn.Linear(4, 2), nn.Linear(4, 2)
optimizers = {
    "a": torch.optim.SGD(first.parameters(), lr=0.1),
    "b": torch.optim.Adam(second.parameters()),
}
for letter in sys.argv[1]:
    for one in optimizers if letter == "c" else letter:
        optimizers[one].zero_grad()
    (first(torch.randn(3, 4)) + second(torch.randn(3, 4))).sum().backward()
    for one in optimizers if letter == "c" else letter:
        optimizers[one].step()
