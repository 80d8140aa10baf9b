"""Trains a model of the size of the smallest Llama 2, 6.7 B parameters, for two steps in plain torch: llama7b.py HOW
DTYPE.

HOW says where the weights are drawn: host (on the host in DTYPE, then moved), cast (on the host in fp32, then cast to
DTYPE and moved) or device.
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DIM, WIDE, VOCAB, HEADS, LAYERS = 4096, 11008, 32000, 32, 32


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(DIM, WIDE, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDE, DIM, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(DIM) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        h = self.norms[0](x)
        q, k, v = (p(h).view(batch, length, HEADS, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(h.transpose(1, 2).reshape(batch, length, DIM))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def make() -> nn.Module:
    blocks = [Block() for _ in range(LAYERS)]
    return nn.Sequential(nn.Embedding(VOCAB, DIM), *blocks, nn.RMSNorm(DIM), nn.Linear(DIM, VOCAB, bias=False))


def main() -> None:
    how, dtype = sys.argv[1], getattr(torch, sys.argv[2])
    if how == "cast":
        model = make().to(dtype).cuda()
    else:
        torch.set_default_dtype(dtype)
        with torch.device("cuda" if how == "device" else "cpu"):
            model = make()
        model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(2):
        ids = torch.randint(0, VOCAB, (1, 512)).cuda()
        optimizer.zero_grad()
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()


main()
