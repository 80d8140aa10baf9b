"""Runs loops that depend on an unknown loss. They must continue as on a device on which the loss falls."""

import json
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters())


def step(dtype=torch.float32):
    optimizer.zero_grad()
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach().to(dtype)


def patience(read, epochs=200, patience=3):
    best, bad = float("inf"), 0
    for epoch in range(epochs):
        value = read(step())
        if value < best:
            best, bad = value, 0
        else:
            bad += 1
        if bad >= patience:
            return epoch + 1
    return epochs


def two_losses():
    best = [float("inf")] * 2
    for epoch in range(20):
        for i in range(2):
            now = step().item()
            if not now < best[i]:
                return epoch
            best[i] = min(best[i], now)
    return 20


def until(small, enough):
    for n in range(10000):
        if small(step(), enough):
            return n
    return None


sequence = []


def reads(dtype):
    """Checks values that are read one after another: positive, below one, and each less than the one before."""
    got = [torch.rand((), device="cuda", dtype=dtype).item() for _ in range(50)]
    sequence.extend(got)
    falls = all(0 < b < a < 1 for a, b in zip(got, got[1:], strict=False))
    return falls and all(torch.tensor(v, dtype=torch.bfloat16).item() == v for v in got)


def after(n):
    """Checks that values are still positive after many reads."""
    scalars = torch.rand(n, device="cuda").unbind()
    for scalar in scalars:
        scalar.item()
    return [torch.rand((), device="cuda", dtype=d).item() > 0 for d in (torch.float16, torch.bfloat16, torch.float32)]


def same():
    """Checks that an unchanged scalar reads the same in every way, and a changed one differs."""
    loss = step()
    first = loss.item()
    stays = [
        first == x
        for x in (
            loss.item(),
            float(loss.cpu()),
            loss.detach().tolist(),
            loss.view(1).tolist()[0],
            float(loss.numpy(force=True)),
        )
    ]
    stays.append(bool(loss == first) and not bool(loss != first) and not bool(loss < first))
    return [*stays, loss.add_(1).item() != first]


def counted():
    """Checks that reading a result that depends on a comparison of unknown values counts as an unknown read."""
    three, five = torch.tensor(3).cuda(), torch.tensor(5).cuda()
    out = []
    for decided in (
        lambda b: int(torch.where(b, three, five)),
        lambda b: int(three.masked_fill(b, 7)),
        lambda b: int(torch.stack([three, five])[b.long()]),
        lambda b: int(three + b),
        lambda b: int(three.clone().copy_(b)),
        lambda b: b.reshape(1).nonzero().numel(),
        lambda b: int(torch.stack([b, b]).sum()),
        lambda b: bool(b.cpu()),
    ):
        before = sum(values.reads().values())
        decided(step() < 0.5)
        out.append(sum(values.reads().values()) > before)
    return out


lines = {
    "reads": [reads(d) for d in (torch.float16, torch.bfloat16, torch.float32, torch.float64)],
    "halves": [sequence[0] == 127 / 128, *(b == a / 2 for a, b in zip(sequence, sequence[64:], strict=False))],
    "half": patience(lambda loss: loss.half().item(), 100),
    "two": two_losses(),
    "until": [
        until(lambda loss, small: loss.item() < small, 1e-2),
        until(lambda loss, small: loss < small, 1e-3),
        until(lambda loss, small: not loss > small, 1e-4),
    ],
    "same": same(),
    "patience": [
        patience(torch.Tensor.item),
        patience(float),
        patience(lambda loss: loss),
        patience(lambda loss: loss.cpu()),
        patience(lambda loss: loss.to("cpu", non_blocking=True)),
    ],
    "logic": [
        bool((step() < 1) & (step() > 0)),
        bool(torch.logical_not(step() > 1)),
        bool((step() < 1).any() and (step() < 1).all()),
        torch.normal(torch.randn(3, device="cuda"), torch.rand(3, device="cuda")).shape == (3,),
    ],
    # Unknown values other than real floating-point scalars read as zero.
    "zeros": [
        torch.randint(9, (), device="cuda").item(),
        torch.rand(2, device="cuda").tolist(),
        bool(torch.randint(9, (), device="cuda") > 0),
        torch.rand((), device="cuda", dtype=torch.complex64).item().real,
    ],
    "after": after(9000),
    "counted": counted(),
}
json.dump({**lines, "sites": {site.rpartition(":")[2]: n for site, n in values.reads().items()}}, sys.stdout)
