"""Makes steps and passes that are easily counted wrong: counts.py gan|host|named. gan trains a GAN for five
iterations; host runs modules on the host; named calls torch.compile, and never the compiled function."""

import sys

import torch
from facts import say
from torch import nn

kind = sys.argv[1]
model = nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if kind == "gan":
    critic = nn.Linear(64, 1).to("cuda")
    other = torch.optim.SGD(critic.parameters(), lr=0.1)
if kind == "named":
    torch.compile(torch.sin)
for _ in range(5):
    made = model(torch.randn(8, 64).to("cuda"))
    if kind == "gan":
        critic.zero_grad()
        critic(made.detach()).mean().backward()
        other.step()
        made = critic(made)
    made.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
if kind == "host":
    scale = nn.LayerNorm(64).eval()
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            model(torch.stack([scale(torch.rand(64)) for _ in range(20)]).to("cuda"))
say(5)
