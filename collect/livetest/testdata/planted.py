"""Trains, and keeps tensors of known sizes alive in the ways in which scripts do so: planted.py.

Prints one line of JSON in each step, with the keeper, the address and the bytes of each kept tensor.
"""

import copy
import json

import torch
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, WIDTH, CLASSES = 8, 2048, 96, 50
ELEMENTS = iter(range(500_009, 10_000_000, 100_003))  # numbers of elements of 4 bytes, different for each tensor
strays, losses, averages = [], [], {}
features = {}
found = {}


def plant():
    return torch.ones(next(ELEMENTS), device="cuda")


def seen(keeper, tensor):
    storage = tensor.untyped_storage()
    found[keeper] = [storage.data_ptr(), storage.nbytes()]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Caching(Block):
    """Keeps tensors besides its parameters and buffers: a table, a list in a dictionary, one made again in each
    forward, and one that its graph saves too. It gets another buffer and another parameter during training."""

    def __init__(self):
        super().__init__()
        self.table, self.boxes = plant(), {"boxes": [plant()]}

    def forward(self, x):
        if self.training:
            self.cache = torch.zeros(3_000_001, device=x.device)
            if "late" not in self._buffers:
                self.register_buffer("late", plant())
            if hasattr(self, "late_scale"):
                x = x * self.late_scale[:1]
        out = super().forward(x).tanh()
        if self.training:
            self.last = out
        return out


class Masking(Block):
    """Scales its gradient by a mask, which a hook of the graph keeps."""

    def forward(self, x):
        out = super().forward(x)
        if self.training:
            mask = torch.ones_like(out)
            seen("tensor hook", mask)
            out.register_hook(lambda gradient: gradient * mask)
        return out


class Weighted(nn.Module):
    """A loss with class weights that are a plain attribute, not a buffer."""

    def __init__(self):
        super().__init__()
        self.alpha = plant()

    def forward(self, logits, targets):
        return (F.cross_entropy(logits, targets, reduction="none") * self.alpha[: len(targets)]).mean()


class Shadowing(torch.optim.AdamW):
    """An optimizer that keeps state of no parameter, and refers to a module."""

    def step(self, closure=None):
        if not hasattr(self, "shadow"):
            self.shadow = plant()
            self.state["all"]["shared"] = plant()
            self.watched = [model[0]]  # the module's tensors stay the module's
        return super().step(closure)


def capture(module, _args, out):
    if module.training:
        features["up"] = out.detach()


def weighted():
    """Returns a loss function whose class weights are in its closure."""
    weights = plant()

    def loss(logits, targets):
        return (F.cross_entropy(logits, targets, reduction="none") * weights[: len(targets)]).mean()

    seen("closure", weights)
    return loss


def fetch(side):
    with torch.cuda.stream(side):
        return torch.randn(BATCH, WIDTH).cuda(), torch.randint(0, CLASSES, (BATCH,)).cuda()


model = nn.Sequential(Caching(), Masking(), Block(), nn.Linear(WIDTH, CLASSES)).cuda()
model[2].up.register_forward_hook(capture)
teacher = copy.deepcopy(model)  # never called
averages = {name: value.detach().clone() for name, value in model.state_dict().items()}
seen("teacher", teacher[0].up.weight)
seen("average", averages["0.up.weight"])
optimizer = Shadowing(model.parameters())
focal, criterion = Weighted(), weighted()
side = torch.cuda.Stream()
batch = fetch(side)
for step in range(STEPS):
    torch.cuda.current_stream().wait_stream(side)
    x, y = batch
    optimizer.zero_grad()
    logits = model(x)
    batch = fetch(side)
    loss = criterion(logits, y) + focal(logits, y)
    retained = (logits.detach() * plant()[:1].requires_grad_()).exp()
    retained.sum().backward(retain_graph=True)
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        validated = model(x[:1024])
    model.train()
    losses.append(loss)
    strays += [logits.detach(), plant(), [p.grad.clone() for p in model[1].parameters()]]
    if step == 1:
        model[0].register_parameter("late_scale", nn.Parameter(plant()))
    tensors = {
        "cache": model[0].cache,
        "saved attribute": model[0].last,
        "table": model[0].table,
        "boxes": model[0].boxes["boxes"][0],
        "late buffer": model[0].late,
        "forward hook": features["up"],
        "focal": focal.alpha,
        "optimizer": optimizer.shadow,
        "optimizer key": optimizer.state["all"]["shared"],
        "prefetched": batch[0],
        "retained": retained,
        "validation": validated,
        "loss": loss,
        "stray output": strays[-3],
        "stray global": strays[-2],
        "gradient copies": strays[-1][0],
    }
    if step > 1:
        tensors["late parameter"] = model[0].late_scale
    for keeper, tensor in tensors.items():
        seen(keeper, tensor)
    print("PLANTED " + json.dumps(found), flush=True)
