"""Trains for ten steps and keeps the graph of each loss: memory grows by each step's activations."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
history = []
for step in range(10):
    optimizer.zero_grad()
    batch = torch.randn(64, 512, device="cuda")
    loss = model(batch).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    history.append(loss)
