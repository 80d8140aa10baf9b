"""Made the journals in this folder, recorded by the agent on the phantom GPU with torch 2.11.0, Opacus 1.6.0 and two
warm-up steps. Usage: train.py vanilla|dpsgd|ghost|oom|killed|resets. Prints facts about the allocator and the
model."""

import json
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

METHOD = sys.argv[1]
B, D, T, V, L = 4, 128, 64, 1000, 2
STEPS = 6


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        q, k, v = (m(x).view(B, T, 4, D // 4).transpose(1, 2) for m in (self.q, self.k, self.v))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(D), Attention(), nn.LayerNorm(D)
        self.fc1, self.fc2 = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.blocks = nn.Embedding(V, D), nn.Sequential(*(Block() for _ in range(L)))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.emb(x))))


def main():
    model = LM().to("cuda")
    optimizer = inner = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss_function = criterion = nn.CrossEntropyLoss()
    privacy = dict(noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=B, loss_reduction="mean")
    if METHOD == "dpsgd":
        from opacus.grad_sample import GradSampleModule
        from opacus.optimizers import DPOptimizer

        model, optimizer = GradSampleModule(model, loss_reduction="mean"), DPOptimizer(inner, **privacy)
    if METHOD == "ghost":
        from opacus.grad_sample import GradSampleModuleFastGradientClipping
        from opacus.optimizers import DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        model = GradSampleModuleFastGradientClipping(
            model, max_grad_norm=1.0, use_ghost_clipping=True, loss_reduction="mean"
        )
        optimizer = DPOptimizerFastGradientClipping(inner, **privacy)
        criterion = DPLossFastGradientClipping(model, optimizer, loss_function, "mean")
    if METHOD == "oom":
        torch.cuda.set_per_process_memory_fraction(0.001)
    for step in range(STEPS):
        if METHOD == "resets" and step == 2:
            torch.cuda.reset_accumulated_memory_stats()
        if METHOD == "resets" and step % 2 == 1:
            torch.cuda.reset_peak_memory_stats()
        x, y = (torch.randint(0, V, (B, T)).to("cuda") for _ in range(2))
        optimizer.zero_grad()
        out = model(x)
        if METHOD == "oom" and step in (2, STEPS - 1):
            try:
                F.relu(torch.empty(1 << 28, device="cuda"))
            except torch.OutOfMemoryError:
                if step == STEPS - 1:
                    raise
        kw = {"shape": out.shape} if METHOD == "ghost" else {}
        criterion(out.reshape(-1, V), y.reshape(-1), **kw).backward()
        if METHOD == "killed" and step == STEPS - 2:
            os.kill(os.getpid(), 9)
        optimizer.step()
    parameters = sum(p.untyped_storage().nbytes() for p in model.parameters())
    state = sum(v.untyped_storage().nbytes() for s in inner.state.values() for v in s.values() if v.is_cuda)
    facts = {"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    print(json.dumps({**facts, "parameters": parameters, "optimizer_state": state}))


main()
