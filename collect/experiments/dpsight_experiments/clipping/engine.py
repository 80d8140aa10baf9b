"""The privacy engine of these methods: Opacus' engine with this package's hooks and optimizers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import nn
from torch.utils.data import DataLoader

from dpsight_experiments._agent import config
from dpsight_experiments.clipping.book_keeping import BookKeepingHooks
from dpsight_experiments.clipping.hooks import Hooks, MixedGhostHooks, TiledHooks
from dpsight_experiments.clipping.optimizers import BookKeepingOptimizer, BookKeepingPerLayerOptimizer
from dpsight_experiments.clipping.refusals import check
from dpsight_experiments.clipping.tiles import TILES, Tiles
from dpsight_experiments.options import UsageError

TWO_PASS = ("mixed_ghost", "flash")
ONE_PASS = ("bk", "flash_bk")
METHODS = TWO_PASS + ONE_PASS


@dataclass
class Private:
    """The result of make_private. The model has got hooks."""

    optimizer: DPOptimizer
    # Called like the given criterion. For two-pass methods it also takes shape=, for the logits of sequences.
    criterion: Callable[..., Any]
    data_loader: DataLoader
    two_pass: bool
    hooks: Hooks


class ClippingEngine(PrivacyEngine):
    """Opacus' engine, whose grad_sample_mode is one of METHODS. tiles bounds the temporaries of flash and flash_bk."""

    def __init__(self, *, tiles: Tiles = TILES, **settings: Any) -> None:
        self.tiles = tiles
        self.hooks: Hooks | None = None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Secure RNG turned off")
            super().__init__(**settings)

    def _prepare_model(
        self,
        module: nn.Module,
        *,
        grad_sample_mode: str,
        wrap_model: bool,
        max_grad_norm: float | Sequence[float],
        **arguments: Any,
    ) -> Hooks:
        self.validate(module=module, optimizer=None, data_loader=None)
        if grad_sample_mode == "mixed_ghost":
            self.hooks = MixedGhostHooks(module, max_grad_norm=max_grad_norm, **arguments)
        elif grad_sample_mode == "flash":
            self.hooks = TiledHooks(module, max_grad_norm=max_grad_norm, tiles=self.tiles, **arguments)
        elif grad_sample_mode == "bk":
            self.hooks = BookKeepingHooks(module, **arguments)
        else:
            self.hooks = BookKeepingHooks(module, tiles=self.tiles, **arguments)
        return self.hooks

    def _prepare_optimizer(self, *, clipping: str, grad_sample_mode: str, **settings: Any) -> DPOptimizer:
        if grad_sample_mode in TWO_PASS:
            return super()._prepare_optimizer(clipping=clipping, grad_sample_mode="ghost", **settings)
        if settings.pop("distributed"):
            raise UsageError(f"method {grad_sample_mode} does not train on several GPUs")
        generator = settings.pop("noise_generator")
        kind = BookKeepingPerLayerOptimizer if clipping == "per_layer" else BookKeepingOptimizer
        return kind(
            hooks=self.hooks,
            generator=self.secure_rng if self.secure_mode else generator,
            secure_mode=self.secure_mode,
            **settings,
        )


def make_private(
    method: str,
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    criterion: Callable[..., Any],
    data_loader: DataLoader,
    noise_multiplier: float,
    max_grad_norm: float | Sequence[float],
    clipping: str = "flat",
    poisson_sampling: bool = False,
    loss_reduction: str = "mean",
    engine: ClippingEngine | None = None,
) -> Private:
    """Makes training private by one of METHODS. Raises UsageError if the method does not support the model or the way
    of clipping."""
    check(method, model, clipping, max_grad_norm, one_pass=method in ONE_PASS)
    engine = engine or ClippingEngine()
    # Opacus returns a criterion only if the mode's name contains "ghost".
    hooks, dp_optimizer, *_, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=data_loader,
        noise_multiplier=noise_multiplier,
        max_grad_norm=max_grad_norm,
        clipping=clipping,
        poisson_sampling=poisson_sampling,
        loss_reduction=loss_reduction,
        grad_sample_mode=method,
        wrap_model=False,
    )
    if method in ONE_PASS:
        config(bk_skips_param_grads=True)
        return Private(dp_optimizer, criterion, loader, two_pass=False, hooks=hooks)
    dp_criterion = DPLossFastGradientClipping(hooks, dp_optimizer, criterion, loss_reduction)
    return Private(dp_optimizer, dp_criterion, loader, two_pass=True, hooks=hooks)
