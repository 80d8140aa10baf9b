"""A whole training step captured in a CUDA graph and replayed, after a warm-up on a stream of its own."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, BATCH, STEPS = 2048, 1024, 8

torch.manual_seed(9)
model = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * WIDTH, WIDTH)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x, y = torch.randn(BATCH, WIDTH).cuda(), torch.randn(BATCH, WIDTH).cuda()


def train() -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        train()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = train()
for _ in range(STEPS):
    x.copy_(torch.randn(BATCH, WIDTH))
    y.copy_(torch.randn(BATCH, WIDTH))
    graph.replay()
print(f"loss {loss.item():.3f}")
