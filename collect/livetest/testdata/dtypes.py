"""Trains a model of several dtypes: dtypes.py. Prints the address, the bytes and the dtype of each tensor in each
step."""

import json

import torch
from torch import nn
from torch.nn import functional as F

STEPS = 6


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(301, 512).bfloat16(), nn.LayerNorm(512)
        self.head = nn.Linear(512, 301, dtype=torch.float64)
        self.register_buffer("mask", torch.ones(4096, dtype=torch.bool))

    def forward(self, ids):
        self.seen = self.tokens(ids).float()
        return self.head(self.norm(self.seen).double())


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(STEPS):
    optimizer.zero_grad()
    ids = torch.randint(0, 301, (16, 128)).cuda()
    F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
    state = [v for p in optimizer.state.values() for v in p.values() if v.is_cuda]
    tensors = [*model.parameters(), *(p.grad for p in model.parameters()), *state, model.mask, ids, model.seen]
    storages = [(t.untyped_storage(), t.dtype) for t in tensors]
    print("TYPED " + json.dumps([[s.data_ptr(), s.nbytes(), str(d)] for s, d in storages]), flush=True)
    del tensors, storages, state
