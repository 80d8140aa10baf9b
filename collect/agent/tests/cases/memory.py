"""Prints what a walk finds at each step's edge: memory.py vanilla|hooks|ghost [keep] [moved] [unfriendly]. Each step
prints a JSON line: address and bytes of parameters, gradients and optimizer state by name, and torch's counters."""

import json
import sys
import warnings
import weakref

import dpsight
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
mode = sys.argv[1]
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 3000), nn.Linear(3000, 50)
        self.head = nn.Linear(50, 7, bias=False)

    def forward(self, x):
        return self.head(self.down(nn.functional.gelu(self.up(self.norm(x)))).mean(1))


model, criterion = Net().cuda(), nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
original, names = optimizer, {p: n for n, p in model.named_parameters()}
if "unfriendly" in sys.argv:  # a dead weak proxy, and a module that raises if walked

    class Closed(nn.Module):
        def children(self):
            raise RuntimeError("closed")

    class Peer:
        pass

    closed, model.cache = Closed(), torch.ones(1000, device="cuda")
    optimizer.peers = [weakref.proxy(Peer())]
    model.peers = [weakref.proxy(Peer())]
if mode != "vanilla":
    from opacus import PrivacyEngine

    loader = DataLoader(TensorDataset(torch.randn(64, 9, 64), torch.zeros(64, dtype=torch.long)), batch_size=16)
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
        wrap_model=False,
    )
    optimizer, criterion = made[1], made[2] if mode == "ghost" else criterion


def place(t):
    return [t.untyped_storage().data_ptr(), t.untyped_storage().nbytes()]


for step in range(dpsight.plan(warmup=2, timed=2)):
    x, y = torch.randn(16, 9, 64).cuda(), torch.zeros(16, dtype=torch.long).cuda()
    if step == 3 and "moved" in sys.argv:  # in a bare step: the old block is gone before the agent's next walk
        moved, state = model.norm.weight, original.state[model.norm.weight]
        moved.data, state["exp_avg"] = moved.data.clone(), state["exp_avg"].clone()
    optimizer.zero_grad(set_to_none="keep" not in sys.argv)
    out = model(x)
    loss = criterion(out, y)
    del out
    loss.backward()
    optimizer.step()
    walk = {
        "step": step,
        "parameter": {n: place(p) for p, n in names.items()},
        "gradient": {n: place(p.grad) for p, n in names.items() if p.grad is not None},
        "state": {f"{names[p]}.{k}": place(v) for p, s in original.state.items() for k, v in s.items() if v.is_cuda},
        "summed": {n: place(p.summed_grad) for p, n in names.items() if getattr(p, "summed_grad", None) is not None},
        "samples": {n: place(p.grad_sample) for p, n in names.items() if getattr(p, "grad_sample", None) is not None},
        "allocated": torch.cuda.memory_allocated(),
        "peak": torch.cuda.max_memory_allocated(),
    }
    print("WALK", json.dumps(walk), flush=True)
    dpsight.step(samples=16)
