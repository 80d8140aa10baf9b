"""Preference optimisation: a language model beside its frozen reference, bf16 weights, padded pairs, two passes."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH, PAIRS, STEPS = 16000, 1024, 10, 16, 512, 6, 6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 2816, bias=False), nn.Linear(WIDTH, 2816, bias=False)
        self.down = nn.Linear(2816, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, _ = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(n, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.places(places))))


def log_probability(model: nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    logits = model(ids[:, :-1]).float().log_softmax(-1)
    return (logits.gather(2, ids[:, 1:, None]).squeeze(2) * mask[:, 1:]).sum(1)


torch.manual_seed(304)
model = Model().to(torch.bfloat16).cuda()
reference = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True)
for _ in range(STEPS):
    ids = torch.randint(0, VOCABULARY, (2 * PAIRS, LENGTH)).cuda()
    mask = (torch.arange(LENGTH)[None, :] < torch.randint(LENGTH // 2, LENGTH, (2 * PAIRS, 1))).cuda()
    with torch.no_grad():
        before = log_probability(reference, ids, mask)
    better, worse = (log_probability(model, ids, mask) - before).chunk(2)
    loss = -F.logsigmoid(0.1 * (better - worse)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{STEPS} steps")
