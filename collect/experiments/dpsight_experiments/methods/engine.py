"""The methods of Opacus' privacy engine: per-sample gradients, fast gradient clipping and ghost clipping."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader

from dpsight_experiments.methods.training import Training
from dpsight_experiments.options import Options

# Arguments of Opacus' optimizer for adaptive clipping, by their names in Opacus.
_ADAPTIVE = (
    "target_unclipped_quantile",
    "clipbound_learning_rate",
    "min_clipbound",
    "max_clipbound",
    "unclipped_num_std",
)


def prepare(
    options: Options, model: nn.Module, optimizer: torch.optim.Optimizer, criterion: nn.Module, loader: DataLoader
) -> Training:
    """Prepares dpsgd, fgc or ghost by PrivacyEngine.make_private."""
    two_pass = options.method != "dpsgd"
    mode = "ghost" if two_pass else options.grad_sample_mode
    # Hooks are attached to the model itself instead of a wrapper, so that modules have the same paths under all
    # methods. Only expanded weights need the wrapper, since they replace the model's call.
    wrap = mode == "ew"
    made = privacy_engine(PrivacyEngine).make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=options.noise_multiplier,
        max_grad_norm=clipping_norms(options, model),
        clipping=options.clipping,
        poisson_sampling=options.poisson,
        grad_sample_mode=mode,
        wrap_model=wrap,
        **_adaptive(options),
    )
    if not two_pass:
        hooks, dp_optimizer, loader = made
        return Training(hooks if wrap else model, dp_optimizer, criterion, loader, private=True)
    hooks, dp_optimizer, dp_criterion, loader = made
    # The engine has no argument for this, and the hooks read the attribute at each call. Without ghost norms the hooks
    # do Lee & Kifer's fast gradient clipping: one layer's per-sample gradients at a time.
    hooks.use_ghost_clipping = options.method == "ghost"
    return Training(model, dp_optimizer, dp_criterion, loader, private=True, two_pass=True)


def privacy_engine(kind: type[PrivacyEngine]) -> PrivacyEngine:
    """Returns an engine with Opacus' defaults, without the warning that its noise comes from no secure generator."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Secure RNG turned off")
        return kind()


def clipping_norms(options: Options, model: nn.Module) -> float | list[float]:
    """Returns the clipping norm C or, for per_layer clipping, one for each of the L parameters: C/√L.

    With these norms a sample's whole gradient has at most the norm C, as with flat clipping, so the noise is the same.
    Opacus' own examples do the same. Like Opacus, it counts parameters and not layers: a bias has a norm of its own.
    """
    if options.clipping != "per_layer":
        return options.max_grad_norm
    count = sum(p.requires_grad for p in model.parameters())
    return [options.max_grad_norm / math.sqrt(count)] * count


def _adaptive(options: Options) -> dict[str, Any]:
    if options.clipping != "adaptive":
        return {}
    return {name: getattr(options, name) for name in _ADAPTIVE}
