"""Runs two threads, each with a graph whose nodes have the same numbers. Keeps one graph and prints its output's
address."""

import threading

import torch

kept = []


def run(keep):
    weight = torch.ones(1000, device="cuda", requires_grad=True)
    out = (weight * 2).exp()
    out.sum().backward(retain_graph=keep)
    if keep:
        kept.append(out)


for keep in (True, False):
    thread = threading.Thread(target=run, args=(keep,))
    thread.start()
    thread.join()
print("KEPT", kept[0].data_ptr())
