"""Trains with checks whether unknown values are finite. Training must continue as if they were."""

import json
import re
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)

# Each check counts once, at its line, however many operators it uses.
x = torch.randn(3000, device="cuda")
assert not torch.isnan(x).any()  # asked: 1
for _ in range(3):
    assert torch.isfinite(x).all()  # asked: 3
x.requires_grad_().register_hook(lambda gradient: print(gradient.isinf().any().item(), file=sys.stderr))  # asked: 1
(x * x).sum().backward()
with open(__file__) as file:
    lines = [(n, re.search(r"# asked: (\d)$", line)) for n, line in enumerate(file, 1)]
asked = {n: int(found[1]) for n, found in lines if found}
asked_as_listed = {f"{__file__}:{n}": count for n, count in asked.items()} == values.assumed()


def train(width, **options):
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    scaler = torch.amp.GradScaler("cuda", growth_interval=2, init_scale=1024.0)
    scales, best = [], 1e9
    for _ in range(5):
        optimizer.zero_grad()
        inputs, labels = torch.randn(16, width, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        if loss.isnan() or not torch.isfinite(loss) or torch.isinf(loss).any() or (loss != loss).any():
            return "stopped: loss"
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        if not all(torch.isfinite(p.grad).all() for p in model.parameters()):
            return "stopped: not all are finite"
        if any(torch.isnan(p.grad).any() for p in model.parameters()):
            return "stopped: one is not a number"
        gradient = model[0].weight.grad
        gradient[~torch.isfinite(gradient)] = 0
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        best = min(best, loss.item())
    return scales


masked = torch.rand(8, device="cuda").masked_fill(torch.arange(8, device="cuda") > 3, float("-inf"))
infinities = [masked == float("-inf"), masked != float("-inf"), masked > float("-inf"), masked == float("inf")]
reads_before = len(values.reads())
json.dump(
    {
        # The largest gradient has 360 kB, and 3.6 kB below.
        "large": [train(300), train(300, fused=True), train(300, foreach=False)],
        "small": [train(30), train(30, fused=True), train(30, foreach=False)],
        "sites": len(values.reads()) - reads_before,
        "asked": asked_as_listed and len(asked) == 3,
        "guesses": values.guesses(),
        "assumed": sorted(values.assumptions()),
        # Comparisons of masked values with infinities stay unknown, except the last.
        "masked": [values.is_known(mask) for mask in infinities],
        # Checks of known infinities get the right answer.
        "known": [
            torch.tensor([1.0, float("inf")], device="cuda").isfinite().all().item(),
            torch.tensor(float("nan"), device="cuda").isnan().item(),
        ],
    },
    sys.stdout,
)
