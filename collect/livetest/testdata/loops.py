"""Trains in loops of several forms: loops.py plain|accumulate|gan|closure|lbfgs|keep|manual|evaluate|scaler."""

import sys

import torch
from facts import Net, batch, say, train
from torch.nn import functional as F

mode = sys.argv[1]
model = Net().cuda()
steps = 5
if mode == "plain":
    train(model, torch.optim.AdamW(model.parameters()), steps)
elif mode == "accumulate":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for i in range(3 * steps):
        x, y = batch()
        (F.cross_entropy(model(x), y) / 3).backward()
        if i % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
elif mode == "gan":
    critic = torch.nn.Sequential(torch.nn.Linear(7, 500), torch.nn.ReLU(), torch.nn.Linear(500, 1)).cuda()
    first, second = torch.optim.Adam(critic.parameters()), torch.optim.Adam(model.parameters())
    for _ in range(steps):
        x, _y = batch()
        first.zero_grad()
        with torch.no_grad():
            fake = model(x)
        real = torch.randn(16, 7).cuda().requires_grad_()
        score = critic(real)
        penalty = torch.autograd.grad(score.sum(), real, create_graph=True)[0].square().sum()
        (critic(fake).mean() - score.mean() + penalty).backward()
        first.step()
        second.zero_grad()
        (-critic(model(x)).mean()).backward()
        second.step()
elif mode in ("closure", "lbfgs"):
    kind = torch.optim.LBFGS if mode == "lbfgs" else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.1)
    for _ in range(steps):
        x, y = batch()

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
elif mode == "keep":
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
elif mode == "manual":
    for _ in range(steps):
        x, y = batch()
        gradients = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
        with torch.no_grad():
            for p, g in zip(model.parameters(), gradients, strict=True):
                p -= 0.1 * g
elif mode == "evaluate":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        train(model, optimizer, 1)
        model.eval()
        with torch.no_grad():
            model(batch()[0]).argmax(1)
        model.train()
elif mode == "scaler":
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
say(steps)
