"""Trains on the main thread while other threads allocate and free memory: one that runs Python, and one of autograd,
which does so without Python's interpreter lock."""

import threading

import torch

done = threading.Event()


def allocate():
    while not done.is_set():
        [torch.empty(1000 * (i % 7 + 1), device="cuda") for i in range(9)]


def backward():
    deep = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(300)]).cuda()
    while not done.is_set():
        deep(torch.randn(4, 32, device="cuda")).sum().backward()


net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
threads = [threading.Thread(target=f) for f in (allocate, backward)]
for thread in threads:
    thread.start()
try:
    for _ in range(30):
        optimizer.zero_grad()
        net(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
finally:
    done.set()
    for thread in threads:
        thread.join()
