"""Computes gradients one example at a time in plain torch, as the reference for DP methods."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Reference:
    """Gradients summed over a batch, by parameter name."""

    clipped: dict[str, Tensor]
    plain: dict[str, Tensor]
    # The norm of each example's gradient over all parameters.
    norms: list[float]


def per_example_loop(
    model: nn.Module, inputs: Tensor, targets: Tensor, max_grad_norm: float, *, per_layer: bool = False
) -> Reference:
    """Sums the gradients of each example's own mean loss, unclipped and clipped to max_grad_norm.

    With per_layer, the loop clips each parameter's gradient to max_grad_norm / sqrt(number of parameters).
    """
    names = [name for name, _ in model.named_parameters()]
    parameters = list(model.parameters())
    clipped = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    plain = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    norms = []
    for x, y in zip(inputs, targets, strict=True):
        logits = model(x.unsqueeze(0))
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
        gradient = torch.autograd.grad(loss, parameters)
        norm = torch.sqrt(sum(g.double().square().sum() for g in gradient)).item()
        for name, g in zip(names, gradient, strict=True):
            plain[name] += g
            if per_layer:
                own = g.double().norm().item()
                clipped[name] += g * (min(1.0, max_grad_norm / len(names) ** 0.5 / own) if own else 1.0)
            else:
                clipped[name] += g * min(1.0, max_grad_norm / norm)
        norms.append(norm)
    return Reference(clipped, plain, norms)


def norm(tensors: dict[str, Tensor]) -> float:
    """The L2 norm over all tensors together."""
    return torch.sqrt(sum(t.double().square().sum() for t in tensors.values())).item()
