"""Trains a model on each of three threads, so that torch's engine replaces one model's gradients while another's step
ends."""

import threading

import torch

failed = []


def train():
    try:
        net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(100)]).cuda()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(60):
            optimizer.zero_grad()
            net(torch.randn(4, 16, device="cuda")).sum().backward()
            optimizer.step()
    except Exception as error:
        failed.append(error)


threads = [threading.Thread(target=train) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if failed:
    raise failed[0]
