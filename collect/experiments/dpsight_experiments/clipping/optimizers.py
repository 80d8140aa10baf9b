"""Optimizers for book-keeping: Opacus', with the clipped sum from the book instead of from per-sample gradients."""

from __future__ import annotations

from typing import Any

import torch
from opacus.optimizers import DPOptimizer, DPPerLayerOptimizer
from torch import Tensor, nn

from dpsight_experiments.clipping.book_keeping import BookKeepingHooks


class BookKeepingOptimizer(DPOptimizer):
    """Flat clipping: a sample's factor is min(1, C / (norm + 1e-6)), the norm over all parameters, as in Opacus."""

    def __init__(self, optimizer: torch.optim.Optimizer, *, hooks: BookKeepingHooks, **settings: Any) -> None:
        self.hooks = hooks
        super().__init__(optimizer, **settings)

    @property
    def accumulated_iterations(self) -> int:
        """Batches that wait to be clipped: step() follows each backward, or the hooks refuse the next forward."""
        return 1

    def _get_flat_grad_sample(self, p: nn.Parameter) -> None:
        """There are no per-sample gradients, but for layers that the hooks see to."""

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clears gradients, and what an unfinished step has left."""
        self.hooks.forget()
        super().zero_grad(set_to_none)

    def clip_and_accumulate(self) -> None:
        """Adds the batch's clipped gradients to p.summed_grad."""
        self.hooks.check_complete()
        self.hooks.clip(self.weights())

    def weights(self) -> dict[nn.Parameter, Tensor]:
        """What each sample's gradient is multiplied by, by parameter."""
        weight = self._weight(self.hooks.get_norm_sample(), self.max_grad_norm)
        return dict.fromkeys(self.params, weight)

    def _weight(self, norm: Tensor, bound: float) -> Tensor:
        return (bound / (norm + 1e-6)).clamp(max=1.0).mul_(self.hooks.scale)


class BookKeepingPerLayerOptimizer(BookKeepingOptimizer, DPPerLayerOptimizer):
    """Per-layer clipping, which in Opacus is by parameter: each has a norm and a factor of its own."""

    def weights(self) -> dict[nn.Parameter, Tensor]:
        """What each sample's gradient is multiplied by, by parameter."""
        bounds = zip(self.params, self.max_grad_norms, strict=True)
        return {p: self._weight(p._norm_sample, bound) for p, bound in bounds}
