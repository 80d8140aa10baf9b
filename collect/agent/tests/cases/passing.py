"""Trains three models, a step each, with modules that return their input."""

import torch
from torch import nn


class Passing(nn.Module):
    """Returns its input together with an output that it computes from the input."""

    def __init__(self, wrap):
        super().__init__()
        self.inner, self.wrap = nn.Linear(32, 32), wrap

    def forward(self, x):
        return self.wrap(x, self.inner(x))


class Net(nn.Module):
    def __init__(self, wrap, give):
        super().__init__()
        self.before, self.passing, self.give = nn.Linear(32, 32), Passing(wrap), give

    def forward(self, x):
        return sum(self.give(self.passing(self.before(x))))


NETS = (
    nn.Sequential(nn.Linear(32, 32), nn.Identity(), nn.Linear(32, 1)),
    Net(lambda x, y: (y, x), tuple),
    Net(lambda x, y: {"out": y, "in": x}, lambda found: found.values()),
)
for net in NETS:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(8, 32)).sum().backward()
    optimizer.step()
