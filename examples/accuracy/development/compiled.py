"""A decoder block stack under torch.compile: rotary positions, RMS norms, SwiGLU, bf16 weights."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, LENGTH, BATCH, VOCABULARY, STEPS = 1024, 6, 16, 1024, 4, 32000, 6


def rotate(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 2816, bias=False), nn.Linear(WIDTH, 2816, bias=False)
        self.down = nn.Linear(2816, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rotate(q, angle), rotate(k, angle), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        z = self.norm_2(x)
        return x + self.down(F.silu(self.gate(z)) * self.up(z))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        half = WIDTH // HEADS // 2
        frequency = 1e4 ** -(torch.arange(half) / half)
        self.register_buffer("angle", torch.arange(LENGTH)[:, None] * frequency, persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, self.angle)
        return self.head(self.norm(x))


torch.manual_seed(10)
model = Decoder().to("cuda", torch.bfloat16)
net = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)
for step in range(STEPS):
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)).cuda()
    loss = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.3f}")
