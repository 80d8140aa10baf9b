"""Optimizers for book-keeping: Opacus' optimizers, with the clipped sum from book-keeping instead of per-sample
gradients."""

from __future__ import annotations

from typing import Any

import torch
from opacus.optimizers import DPOptimizer, DPPerLayerOptimizer
from torch import Tensor, nn

from dpsight_experiments.clipping.book_keeping import BookKeepingHooks


class BookKeepingOptimizer(DPOptimizer):
    """Flat clipping as in Opacus: a sample's factor is min(1, C / (norm + 1e-6)), where the norm is over all
    parameters."""

    def __init__(self, optimizer: torch.optim.Optimizer, *, hooks: BookKeepingHooks, **settings: Any) -> None:
        self.hooks = hooks
        super().__init__(optimizer, **settings)

    @property
    def accumulated_iterations(self) -> int:
        """The number of batches that wait to be clipped. step() must follow each backward, or the hooks refuse the next
        forward."""
        return 1

    def _get_flat_grad_sample(self, p: nn.Parameter) -> None:
        """Does nothing: only layers that the hooks handle separately have per-sample gradients."""

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clears the gradients, and what an unfinished step has left."""
        self.hooks.forget()
        super().zero_grad(set_to_none)

    def clip_and_accumulate(self) -> None:
        """Adds the batch's clipped gradients to p.summed_grad."""
        self.hooks.check_complete()
        self.hooks.clip(self.weights())

    def weights(self) -> dict[nn.Parameter, Tensor]:
        """Returns, by parameter, the factor for each sample's gradient."""
        weight = self._weight(self.hooks.get_norm_sample(), self.max_grad_norm)
        return dict.fromkeys(self.params, weight)

    def _weight(self, norm: Tensor, bound: float) -> Tensor:
        return (bound / (norm + 1e-6)).clamp(max=1.0).mul_(self.hooks.scale)


class BookKeepingPerLayerOptimizer(BookKeepingOptimizer, DPPerLayerOptimizer):
    """Per-layer clipping, which in Opacus means by parameter: each parameter has a norm and a factor of its own."""

    def weights(self) -> dict[nn.Parameter, Tensor]:
        """Returns, by parameter, the factor for each sample's gradient."""
        bounds = zip(self.params, self.max_grad_norms, strict=True)
        return {p: self._weight(p._norm_sample, bound) for p, bound in bounds}
