"""A training loop in which tensors of known sizes are kept alive in the ways that people keep them: planted.py.

Each step prints one line of JSON: of each tensor that is kept its keeper, address and bytes.
"""

import json

import torch
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, WIDTH, CLASSES = 6, 2048, 96, 50
SIZES = {"module": 3_000_001, "closure": 1_000_003, "global": 500_009}  # elements of 4 bytes
strays = []
features = {}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Caching(Block):
    """Keeps a tensor of its own beside its parameters and buffers, made anew in each forward."""

    def forward(self, x):
        self.cache = torch.zeros(SIZES["module"], device=x.device)
        return super().forward(x)


class Masking(Block):
    """Scales its gradient by a mask, which a hook of the graph keeps."""

    def forward(self, x):
        out = super().forward(x)
        mask = torch.ones_like(out)
        seen("tensor hook", mask)
        out.register_hook(lambda gradient: gradient * mask)
        return out


def capture(_module, _args, out):
    features["up"] = out.detach()


def weighted():
    """A loss whose weights live in its closure."""
    weights = torch.ones(SIZES["closure"], device="cuda")

    def loss(logits, targets):
        return (F.cross_entropy(logits, targets, reduction="none") * weights[: len(targets)]).mean()

    seen("closure", weights)
    return loss


found = {}


def seen(keeper, tensor):
    storage = tensor.untyped_storage()
    found[keeper] = [storage.data_ptr(), storage.nbytes()]


model = nn.Sequential(Caching(), Masking(), Block(), nn.Linear(WIDTH, CLASSES)).cuda()
model[2].up.register_forward_hook(capture)
optimizer = torch.optim.AdamW(model.parameters())
criterion = weighted()
for _ in range(STEPS):
    x, y = torch.randn(BATCH, WIDTH).cuda(), torch.randint(0, CLASSES, (BATCH,)).cuda()
    optimizer.zero_grad()
    logits = model(x)
    loss = criterion(logits, y)
    loss.backward()
    optimizer.step()
    seen("module", model[0].cache)
    seen("forward hook", features["up"])
    strays.append(logits.detach())
    seen("stray output", strays[-1])
    strays.append(torch.zeros(SIZES["global"], device="cuda"))
    seen("stray global", strays[-1])
    print("PLANTED " + json.dumps(found), flush=True)
