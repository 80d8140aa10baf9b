"""A loop of short steps: short.py STEPS [FAILS]. In the last step but one a request fails: in the model's forward
(forward), in the loss (loss), in backward (backward), in the optimizer (optimizer), or between (between). Or from step
20 on something else is done: dpsight.step() is called (user), the model is evaluated (eval), another optimizer steps
(another), one does in backward (inside), around the first (wraps) or inside it (inner), or inside
itself, since with the first of its base class torch has hooks run there too (twice), or a GradScaler takes its
steps (scaler). Or in step 20 alone the optimizer raises (raises). With plan all steps are planned."""

import contextlib
import sys

import dpsight
import torch
from dpsight import steps as agent
from torch import nn

agent._SHORT_NS = 1 << 62  # however slow the machine
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
    inner = None

    @torch.no_grad()
    def step(self, closure=None):  # noqa: ANN001, ANN201
        if self.asks:
            ask()
        if self.raises:
            raise ValueError
        if self.inner is not None:
            self.inner.step()
        return super().step(closure)


class Around(torch.optim.Optimizer):
    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure=None):  # noqa: ANN001, ANN201
        return self.inner.step(closure)


model = nn.Sequential(Layer(64, 64), nn.GELU(), Layer(64, 10)).to("cuda")
optimizer = Optimizer(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", enabled=fails == "scaler")
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
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(lambda p: torch.optim.SGD([p], lr=0.1).step())
    if i == 20 and fails == "wraps":
        optimizer = Around(optimizer)
    if i == 20 and fails == "inner":
        optimizer.inner = torch.optim.Adam(model.parameters(), lr=0.1)
    if i == 20 and fails == "twice":
        torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.raises = i == 20 and fails == "raises"
    if i >= 20 and fails == "scaler":
        scaler.step(optimizer)
        scaler.update()
    elif i < 20 or fails != "inside":
        with contextlib.suppress(ValueError):
            optimizer.step()
    if fails == "plan" or (i >= 20 and fails == "user"):
        dpsight.step()
