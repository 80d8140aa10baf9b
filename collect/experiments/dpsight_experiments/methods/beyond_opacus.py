"""The methods that Opacus does not have: mixed ghost clipping, norms by tiles, and book-keeping."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader

from dpsight_experiments import clipping
from dpsight_experiments.methods.engine import clipping_norms
from dpsight_experiments.methods.training import Training
from dpsight_experiments.options import Options


def prepare(
    options: Options, model: nn.Module, optimizer: torch.optim.Optimizer, criterion: nn.Module, loader: DataLoader
) -> Training:
    """Prepares one of clipping.METHODS."""
    made = clipping.make_private(
        options.method,
        model=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=options.noise_multiplier,
        max_grad_norm=clipping_norms(options, model),
        clipping=options.clipping,
        poisson_sampling=options.poisson,
    )
    return Training(model, made.optimizer, made.criterion, made.data_loader, private=True, two_pass=made.two_pass)
