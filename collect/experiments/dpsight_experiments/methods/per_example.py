"""The per-example loop: it computes, clips and sums the gradient of one example at a time. All other DP methods must
give the same result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizerFastGradientClipping
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from dpsight_experiments._agent import phase
from dpsight_experiments.methods.engine import clipping_norms, privacy_engine
from dpsight_experiments.methods.training import Training
from dpsight_experiments.options import Options


class PerExampleOptimizer(DPOptimizerFastGradientClipping):
    """Clips p.grad, which is the gradient of a batch of one example, before adding it to p.summed_grad.

    The base class sums gradients that are already clipped, and then adds Opacus' noise and makes the step.
    max_grad_norm bounds the whole gradient, or is a list with a bound for each parameter.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, *, max_grad_norm: float | Sequence[float], **settings: Any
    ) -> None:
        self.max_grad_norms = max_grad_norm if isinstance(max_grad_norm, Sequence) else None
        # The noise must suit the largest norm that a sample's whole gradient can have.
        whole = max_grad_norm if self.max_grad_norms is None else torch.tensor(max_grad_norm).norm().item()
        super().__init__(optimizer, max_grad_norm=whole, **settings)

    def accumulate(self) -> None:
        """Clips the example's gradient and adds it. The factor is Opacus' own: min(1, C / (norm + 1e-6))."""
        with phase("clip"):
            if self.max_grad_norms is None:
                clip_grad_norm_(self.params, self.max_grad_norm)
            else:
                for p, bound in zip(self.params, self.max_grad_norms, strict=True):
                    clip_grad_norm_(p, bound)
        super().accumulate()


class PerExampleEngine(PrivacyEngine):
    """Opacus' engine, with the loop's optimizer for the mode without per-sample gradients."""

    def _prepare_optimizer(
        self, *, optimizer: torch.optim.Optimizer, noise_generator: torch.Generator | None, **settings: Any
    ) -> PerExampleOptimizer:
        for other in ("distributed", "clipping", "grad_sample_mode"):
            settings.pop(other)
        return PerExampleOptimizer(optimizer, generator=noise_generator, **settings)


def prepare(
    options: Options, model: nn.Module, optimizer: torch.optim.Optimizer, criterion: nn.Module, loader: DataLoader
) -> Training:
    """Prepares the loop, whose gradients come from plain autograd. The training loop must give it batches of one
    example."""
    _, dp_optimizer, loader = privacy_engine(PerExampleEngine).make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=options.noise_multiplier,
        max_grad_norm=clipping_norms(options, model),
        clipping=options.clipping,
        poisson_sampling=options.poisson,
        grad_sample_mode="no_op",
        wrap_model=False,
    )
    return Training(model, dp_optimizer, criterion, loader, private=True)
