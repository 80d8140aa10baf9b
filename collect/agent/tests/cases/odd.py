"""Trains with loops of unusual forms: odd.py MODE. The modes are below."""

import functools
import sys
import threading

import torch
from torch import nn

mode = sys.argv[1]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
x = torch.randn(32, 8)


def loss():
    return model(x).square().mean()


def plain_step(optimizer):
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


if mode == "in_backward":
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    for _ in range(3):
        loss().backward()
elif mode == "func":
    from torch.func import functional_call, grad

    parameters = {k: v.detach().clone() for k, v in model.named_parameters()}
    for _ in range(2):
        g = grad(lambda p: functional_call(model, p, (x,)).square().mean())(parameters)
        parameters = {k: v - 0.1 * g[k] for k, v in parameters.items()}
elif mode == "manual":
    for _ in range(3):
        loss().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
elif mode == "scaler":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=2)
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(loss() * 3e5).backward()
        scaler.step(optimizer)
        scaler.update()
elif mode == "interrupt":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    class Sly:
        """An output that raises KeyboardInterrupt if the agent reads its attributes at the end of the call."""

        @property
        def __dict__(self):
            raise KeyboardInterrupt

    class Interrupted(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.calls = model, 0

        def forward(self, z):
            self.calls += 1
            out = self.inner(z)
            if self.calls == 2:
                raise KeyboardInterrupt
            if self.calls == 3:
                raise ValueError
            return Sly() if self.calls == 4 else out

    outer = Interrupted()
    for _ in range(6):
        try:
            optimizer.zero_grad()
            outer(x).square().mean().backward()
            optimizer.step()
        except (KeyboardInterrupt, ValueError) as error:
            print(type(error).__name__)
elif mode == "timeout":  # an alarm's handler raises an exception at any place in a step
    import signal

    class Timeout(Exception):
        pass

    def late(*_):
        raise Timeout

    signal.signal(signal.SIGALRM, functools.partial(late) if "partial" in sys.argv else late)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain_step(optimizer)
    caught = 0
    for i in range(150):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + i * 0.00002)
            for _ in range(500):
                plain_step(optimizer)
        except Timeout:
            caught += 1
            torch.set_grad_enabled(True)  # the alarm may have come before torch's no_grad restored the mode
    print("caught", caught)
elif mode == "step_raises":

    class Raising(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            Raising.calls += 1
            if Raising.calls == 1:
                raise ValueError
            return super().step(closure)

    optimizer = Raising(model.parameters(), lr=0.1)
    for _ in range(3):
        try:
            plain_step(optimizer)
        except ValueError:
            pass
elif mode == "threads":

    def train():
        own = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            own(x).sum().backward()
            optimizer.step()

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif mode == "subclass":

    class Mine(torch.optim.AdamW):
        def step(self, closure=None):
            return super().step(closure)

    optimizer = Mine(model.parameters())
    for _ in range(2):
        plain_step(optimizer)
elif mode == "hooks":  # one hook stays, and many die
    from dpsight.taggers.tensor_hooks import tensor_hooks

    model[0].weight.register_hook(str)
    for _ in range(12_000):
        torch.ones(1, requires_grad=True).register_hook(repr)
    print(len(tensor_hooks) <= 10_000, str in [hook for _, hook in tensor_hooks.alive()])
elif mode == "watched":  # the script's own function mode sees calls on tensors, in bare steps too
    from torch.overrides import TorchFunctionMode

    class Seen(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(getattr(func, "__qualname__", str(func)))
            return func(*args, **(kwargs or {}))

    optimizer, seen = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(6):
        with Seen():
            model[0].weight.register_hook(lambda grad: None).remove()
        plain_step(optimizer)
    print(len(seen), sorted(set(seen)))
elif mode in ("user", "planned"):
    import dpsight

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    n = dpsight.plan(warmup=2, timed=2) if mode == "planned" else 3
    print("steps", n)
    dpsight.config(method="vanilla", api_key="hunter2hunter2", rate=float("nan"))

    @dpsight.phase("data")
    def batch():
        with dpsight.phase("inner"):
            dpsight.mark("here")

    for i in range(n):
        batch()
        plain_step(optimizer)
        plain_step(optimizer)
        dpsight.metric("loss", 0.5 + i)
        dpsight.step(samples=32, tokens=64)
    dpsight.tag(x, "inputs", "x")
print("done")
