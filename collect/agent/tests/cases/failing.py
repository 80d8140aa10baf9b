"""Makes a request fail: failing.py aside|inside|host|refused. The request fails in a backward: on another thread, on
the engine's thread, or on the training thread, which runs nodes of the host. With refused, the request fails before
backward, while the model cannot be walked."""

import sys
import threading

import torch
from torch import nn

mode = sys.argv[1]


def fail():
    mine = torch.zeros(1 << 20, device="cuda")
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        print("failed", mine.numel())


def aside():
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


class Held(torch.autograd.Function):
    """Holds backward up while a request fails."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        aside() if mode == "aside" else fail()
        return gradient


class Model(nn.Sequential):
    closed = False

    def named_parameters(self, *args, **kwargs):
        if self.closed:
            raise ValueError("closed")
        return super().named_parameters(*args, **kwargs)


model = Model(nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(6):
    optimizer.zero_grad(set_to_none=False)  # so the gradients of the step before live during backward
    out = model(torch.ones(8, 64, device="cuda"))
    if i in (2, 4) and mode == "refused":  # step 2 is instrumented, step 4 is bare
        model.closed = True
        fail()
        model.closed = False
    elif i == 4 and mode != "refused":  # step 4 is bare, so it has no tags yet
        out = Held.apply(out.cpu() if mode == "host" else out)
    out.sum().backward()
    optimizer.step()
