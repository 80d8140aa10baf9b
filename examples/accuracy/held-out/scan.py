"""A Mamba-2-like language model: a chunked state-space scan in plain torch, each block compiled, bf16 autocast."""

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LAYERS, LENGTH, BATCH, STEPS = 16000, 768, 6, 2048, 4, 5
INNER, HEADS, STATE, CHUNK = 2 * WIDTH, 24, 64, 128


def decays(a: torch.Tensor) -> torch.Tensor:
    """exp of the sum of a over (j, i] for every j <= i of the last dimension, zero elsewhere."""
    total = a.cumsum(-1)
    lower = torch.ones(a.size(-1), a.size(-1), dtype=torch.bool, device=a.device).tril()
    return (total[..., :, None] - total[..., None, :]).masked_fill(~lower, -torch.inf).exp()


def scan(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    batch, length, heads, width = x.shape
    x, b, c = (z.unflatten(1, (-1, CHUNK)) for z in (x, b, c))
    a = a.unflatten(1, (-1, CHUNK)).permute(0, 3, 1, 2)
    total = a.cumsum(-1)
    within = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, decays(a), x)
    states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, (total[..., -1:] - total).exp(), x)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
    carried = decays(F.pad(total[..., -1], (1, 0)))
    states = torch.einsum("bhzc,bchpn->bzhpn", carried, states)[:, :-1]
    across = torch.einsum("bcln,bchpn,bhcl->bclhp", c, states, total.exp())
    return (within + across).reshape(batch, length, heads, width)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(INNER)
        self.into = nn.Linear(WIDTH, 2 * INNER + 2 * STATE + HEADS, bias=False)
        self.conv = nn.Conv1d(INNER + 2 * STATE, INNER + 2 * STATE, 4, padding=3, groups=INNER + 2 * STATE)
        self.rate, self.skip = nn.Parameter(torch.rand(HEADS)), nn.Parameter(torch.ones(HEADS, 1))
        self.step = nn.Parameter(torch.full((HEADS,), -3.0))
        self.out = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        z, xbc, step = self.into(self.norm_1(u)).split([INNER, INNER + 2 * STATE, HEADS], -1)
        xbc = F.silu(self.conv(xbc.transpose(1, 2))[..., : u.size(1)].transpose(1, 2))
        x, b, c = xbc.float().split([INNER, STATE, STATE], -1)
        x, step = x.unflatten(-1, (HEADS, -1)), F.softplus(step.float() + self.step)
        y = scan(x * step[..., None], -self.rate.exp() * step, b, c) + self.skip * x
        return u + self.out(self.norm_2(y.flatten(2) * F.silu(z)))


torch.manual_seed(107)
embedding, head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
model = nn.Sequential(embedding, *(Block() for _ in range(LAYERS)), nn.RMSNorm(WIDTH), head).cuda()
for layer in model[1:-2]:
    layer.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=0.1, fused=True)
for step in range(STEPS):
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.3f}")
