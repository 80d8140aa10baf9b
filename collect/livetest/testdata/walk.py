"""Trains, and walks over the models and the optimizers after each backward and at each step's end: walk.py CASE.

Cases: vanilla, momentum, accumulate, keep, gan (an MLP); dpsgd, ghost, transformer-dpsgd, transformer-ghost (through
Opacus).
Prints one line of JSON for each walk: the address and bytes of every storage on the device, by category.
"""

import json
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
case = sys.argv[1]
torch.manual_seed(0)
STEPS, BATCH = 6, 8


class MLP(nn.Module):
    def __init__(self, inputs=64, hidden=3000, outputs=7):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(inputs), nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)
        self.register_buffer("shift", torch.zeros(inputs + 1))

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x + self.shift[1:]))))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.attention, self.second = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary=701, width=64, heads=4, layers=2, length=24):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        places = torch.arange(ids.size(1), device=ids.device).repeat(ids.size(0), 1)
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.places(places))))


def places_of(tensors):
    """Returns the address and the bytes of each storage on the device, once."""
    found = {}
    for t in tensors:
        if isinstance(t, torch.Tensor) and t.is_cuda:
            found[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
    return sorted(found.items())


def walk(edge, step, models, optimizers):
    """Walks and prints what it finds. edge names the place in the script."""
    parameters = [p for m in models for p in m.parameters()]
    line = {
        "edge": edge,
        "step": step,
        "parameters": places_of(parameters),
        "buffers": places_of(b for m in models for b in m.buffers()),
        "gradients": places_of(p.grad for p in parameters if p.grad is not None),
        "optimizer_state": places_of(v for o in optimizers for s in o.state.values() for v in s.values()),
        "allocated": torch.cuda.memory_allocated(),
    }
    print("WALK " + json.dumps(line), flush=True)


def plain(optimizer_of, microbatches=1, keep=False):
    model = MLP().cuda()
    optimizer = optimizer_of(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=not keep)
        for _ in range(microbatches):
            x, y = torch.randn(BATCH, 64).cuda(), torch.randint(0, 7, (BATCH,)).cuda()
            loss = F.cross_entropy(model(x), y) / microbatches
            loss.backward()
            walk("backward", step, [model], [optimizer])
        optimizer.step()
        walk("step", step, [model], [optimizer])


def gan():
    generator, critic = MLP(16, 500, 64).cuda(), MLP(64, 300, 1).cuda()
    first, second = torch.optim.Adam(critic.parameters()), torch.optim.SGD(generator.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        first.zero_grad()
        with torch.no_grad():
            fake = generator(torch.randn(BATCH, 16).cuda())
        (critic(fake).mean() - critic(torch.randn(BATCH, 64).cuda()).mean()).backward()
        first.step()
        second.zero_grad()
        loss = -critic(generator(torch.randn(BATCH, 16).cuda())).mean()
        loss.backward()
        walk("backward", step, [generator, critic], [first, second])
        second.step()
        walk("step", step, [generator, critic], [first, second])


class TokenLoss(nn.CrossEntropyLoss):
    """A loss that averages over each sequence."""

    def forward(self, logits, targets):
        loss = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").mean(1)
        return loss if self.reduction == "none" else loss.mean()


def private(model, mode, batch, criterion):
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=inner,
        criterion=criterion,
        data_loader=DataLoader(TensorDataset(torch.zeros(64, 1)), batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    wrapped, optimizer = made[:2]
    criterion = made[2] if mode == "ghost" else criterion
    for step in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        loss = criterion(wrapped(x), y)
        loss.backward()
        walk("backward", step, [model], [inner])
        optimizer.step()
        walk("step", step, [model], [inner])


def rows():
    return torch.randn(BATCH, 64).cuda(), torch.randint(0, 7, (BATCH,)).cuda()


def tokens():
    ids = torch.randint(0, 701, (BATCH, 25))
    return ids[:, :-1].contiguous().cuda(), ids[:, 1:].contiguous().cuda()


class PrivateMLP(nn.Module):
    """An MLP without buffers, since Opacus refuses modules that have their own."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 3000), nn.Linear(3000, 7)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


def adamw(parameters):
    return torch.optim.AdamW(parameters)


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


if case == "vanilla":
    plain(adamw)
elif case == "momentum":
    plain(momentum)
elif case == "accumulate":
    plain(momentum, microbatches=3)
elif case == "keep":
    plain(adamw, keep=True)
elif case == "gan":
    gan()
elif case in ("dpsgd", "ghost"):
    private(PrivateMLP().cuda(), {"dpsgd": "hooks"}.get(case, case), rows, nn.CrossEntropyLoss())
else:
    mode = {"transformer-dpsgd": "hooks", "transformer-ghost": "ghost"}[case]
    private(Transformer().cuda(), mode, tokens, TokenLoss())
