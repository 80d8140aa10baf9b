"""Trains some steps. A CUDA graph captures one of them on another stream; the steps before and after it run
normally."""

import torch
from torch import nn

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 64).cuda()


def train():
    optimizer.zero_grad(set_to_none=False)
    model(x).sum().backward()
    optimizer.step()


for _ in range(3):
    train()
aside = torch.cuda.Stream()
aside.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(aside):
    train()
torch.cuda.current_stream().wait_stream(aside)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    print("captures", torch.cuda.is_current_stream_capturing())
    train()
graph.replay()
train()
