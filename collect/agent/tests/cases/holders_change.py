"""Keeps blocks that change their holder, and tensors whose holders are hard to find."""

import gc

import torch

kept = []
cache = {}


class Labelled(torch.Tensor):
    """A subclass of Tensor, as libraries define them."""


def block(n):
    return torch.ones(n * 1024, device="cuda")


def main():
    net = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(32, 64, device="cuda")
    changed = torch.ones(64, device="cuda", requires_grad=True) * 1
    views = changed.unbind(0)
    changed.mul_(2)  # none of the views has a grad_fn any more
    kept.append(block(32).as_subclass(Labelled))
    cache["of the script"] = block(33)
    local = cache["of the script"]
    out, handed = [block(30)], [block(31)]
    future = torch.futures.Future()
    for step in range(3):
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            kept.append(out[0])
            future.set_result(handed[0])
            out = handed = None
            kept.append(block(34))  # the agent looks for holders only if memory has grown
    return len(views), local.numel(), future


*shown, held_by_cpp = main()
gc.collect()
print(shown, torch.cuda.memory_allocated())
