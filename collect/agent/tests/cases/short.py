"""Trains short steps: short.py STEPS [FAILS]. A request fails in the last step but one: in the forward pass, the
loss, backward or the optimizer, or between them (forward, loss, backward, optimizer, between). Or from step 20 on the
loop changes: dpsight.step() is called (user), the model is evaluated (eval), another optimizer steps instead
(another), in backward (inside), around the first one (wraps), within it (inner; it raises: inner-raises), or is
merely made (twice). A GradScaler steps the optimizer (scaler) or an inner one (scaled). The optimizer calls a
compiled function (compiled), or a closure that updates in backward (closure-inside), recomputes (closure-checkpoint)
or names a phase (closure-phase). In step 20 alone the optimizer raises (raises). With plan, all steps are planned."""

import contextlib
import sys

import dpsight
import torch
import torch.utils.checkpoint
from dpsight.recorder import unphased_steps
from torch import nn

unphased_steps.SHORT_NS = 1 << 62  # steps count as short on any machine
steps, fails = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""


def ask() -> None:
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        print("failed", error is not None)


class Layer(nn.Linear):
    asks = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.asks:
            ask()
        return super().forward(x)


class Ask(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # noqa: ANN001, ANN205
        return x.clone()

    @staticmethod
    def backward(ctx, g):  # noqa: ANN001, ANN205
        ask()
        return g


class Optimizer(torch.optim.SGD):
    asks = raises = False
    inner = called = None

    @torch.no_grad()
    def step(self, closure=None):  # noqa: ANN001, ANN201
        if self.asks:
            ask()
        if self.raises:
            raise ValueError
        if self.inner is not None:
            with contextlib.suppress(ValueError):
                self.inner.step()
        if self.called is not None:
            self.called(torch.ones(1))
        return super().step(closure)


class Failing(torch.optim.SGD):
    def step(self, closure=None):  # noqa: ANN001, ANN201
        raise ValueError


class Around(torch.optim.Optimizer):
    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure=None):  # noqa: ANN001, ANN201
        return scaler.step(self.inner) if fails == "scaled" else self.inner.step(closure)


def hook_inside() -> None:
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: torch.optim.SGD([p], lr=0.1).step())


@torch.enable_grad()
def closure() -> torch.Tensor:
    optimizer.zero_grad()
    if fails == "closure-checkpoint":
        loss = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum()
    else:
        loss = model(x).sum()
    loss.backward()
    if fails == "closure-phase" and i == 20:
        with dpsight.phase("check"):
            model(x)
    return loss


model = nn.Sequential(Layer(64, 64), nn.GELU(), Layer(64, 10)).to("cuda")
optimizer = Optimizer(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", enabled=fails in ("scaler", "scaled"))
x, y = torch.randn(8, 64).to("cuda"), torch.zeros(8, dtype=torch.long).to("cuda")
for i in range(dpsight.plan(0, steps // 2) if fails == "plan" else steps):
    now = fails if i == steps - 2 else ""
    model[2].asks, optimizer.asks = now == "forward", now == "optimizer"
    optimizer.zero_grad()
    out = model(x)
    if now == "loss":
        ask()
    if now == "backward":
        out = Ask.apply(out)
    loss = nn.functional.cross_entropy(out, y)
    (scaler.scale(loss) if i >= 20 else loss).backward()
    if now == "between":
        ask()
    if i == 20 and fails == "another":
        optimizer = Optimizer(model.parameters(), lr=0.1)
    if i >= 20 and fails == "eval":
        model.eval()
        with torch.no_grad():
            model(x)
        model.train()
    if i == 20 and fails == "inside":
        hook_inside()
    if i == 20 and fails in ("wraps", "scaled"):
        optimizer = Around(optimizer)
    if i == 20 and fails.startswith("inner"):
        optimizer.inner = (torch.optim.Adam if fails == "inner" else Failing)(model.parameters(), lr=0.1)
    if i == 20 and fails == "twice":
        torch.optim.SGD(model.parameters(), lr=0.1)
    if i == 20 and fails == "compiled":
        optimizer.called = torch.compile(lambda t: t + 1, backend="eager")
    if i == 20 and fails == "closure-inside":
        hook_inside()
    optimizer.raises = i == 20 and fails == "raises"
    if i >= 20 and fails == "scaler":
        scaler.step(optimizer)
        scaler.update()
    elif i >= 20 and fails.startswith("closure"):
        optimizer.step(closure)
    elif i < 20 or fails != "inside":
        with contextlib.suppress(ValueError):
            optimizer.step()
    if i >= 20 and fails == "scaled":
        scaler.update()
    if fails == "plan" or (i >= 20 and fails == "user"):
        dpsight.step()
