"""Runs a graph in which nodes of other threads have the same numbers as the main thread's nodes: worker, an ended
thread made them; engine, torch's engine made them in another graph; alone, there are none. The test reads the
comments."""

import sys
import threading

import torch

case = sys.argv[1]
x = torch.ones(64, 64, device="cuda")
v = torch.ones(64, 64, device="cuda", requires_grad=True)
w = torch.ones(64, 64, device="cuda", requires_grad=True)
model = torch.nn.Sequential(*[torch.nn.Tanh() for _ in range(8)])
made = []
teacher = torch.tanh(x @ v)  # T
if case == "worker":
    thread = threading.Thread(target=lambda: made.append(model(w)))
    thread.start()
    thread.join()
elif case == "engine":
    (gradient,) = torch.autograd.grad(w.sin().sum(), w, create_graph=True)
    made.append(gradient)
else:
    made.append(w.sin())  # A
loss = (made[0] * teacher).sum()  # loss
loss.backward()  # L
