"""Keeps a block in each of many ways in which Python and C++ can hold one. Each way has a block of another size."""

import gc
import sys
import threading
import weakref

import torch

kept = []
by_name = {}


def block(n):
    return torch.ones(n * 1024, device="cuda")


class Net(torch.nn.Module):
    table = {}

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(64, 64)
        self.memory = []

    def forward(self, x):
        return self.fc(x).relu()


class Node:
    pass


class Saves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, size):
        ctx.save_for_backward(block(size))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def closure():
    enclosed = block(13)
    return lambda: enclosed


def default(argument=[]):  # noqa: B006
    return argument


def generator():
    inside = block(15)
    yield
    del inside


def fail():
    failing = block(16)
    raise ValueError(failing.numel())


def called_back(node):
    enclosed = block(17)
    return weakref.ref(node, lambda _: enclosed)


def cycle():
    node = Node()
    node.itself, node.tensor = node, block(18)


def work(ready, done):
    aside = block(20)
    ready.set()
    done.wait()
    del aside


def main():
    local = block(21)
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(32, 64, device="cuda")
    kept.extend(block(n) for n in (10, 11))
    by_name["first"] = {"inner": block(12)}
    function = closure()
    default().append(block(14))
    generated = generator()
    next(generated)
    try:
        fail()
    except ValueError as error:
        caught = error
    node = Node()
    reference = called_back(node)
    gc.collect()
    gc.disable()
    cycle()
    net.fc.memory = [block(19)]
    Net.table["shared"] = block(24)
    ready, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=work, args=(ready, done), name="worker")
    thread.start()
    ready.wait()
    running = Saves.apply(net(x).sum(), 22)
    view = block(23)[:512]
    future = torch.futures.Future()  # C++ holds it, unseen by Python's garbage collector
    future.set_result(block(25))
    for _ in range(2):
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    done.set()
    thread.join()
    if "oom" in sys.argv:
        failing = [block(26)]
        try:
            torch.empty(1 << 45, device="cuda")
        except torch.OutOfMemoryError:
            del failing
    return local, function, caught, reference, running, view, future


print(len(main()), torch.cuda.memory_allocated())
kept.clear()
gc.collect()
print(torch.cuda.memory_allocated(), gc.isenabled())
