"""The training methods: what each makes of a model, an optimizer and a loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from dpsight_experiments._agent import phase
from dpsight_experiments.options import Options

GRAD_SAMPLE_MODES = {"dpsgd": "hooks", "ghost": "ghost"}


@dataclass
class Training:
    """A model made ready for training by one method."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    # (logits, targets) to a loss with backward(), the mean over the samples of each sample's mean loss.
    criterion: Callable[..., Any]
    loader: DataLoader
    private: bool = False
    # Ghost clipping makes two backward passes on the samples' own losses, so it must tell the sequences apart.
    two_pass: bool = False

    def loss(self, logits: Tensor, targets: Tensor) -> Any:
        """The loss of logits [B, T, V] or [B, C]. A sequence is one sample: its loss is the mean over its tokens."""
        if logits.dim() == 2:
            return self.criterion(logits, targets)
        # All sequences are equally long, so the mean over all tokens is the mean over the sequences.
        shape = {"shape": logits.shape} if self.two_pass else {}
        return self.criterion(logits.flatten(0, 1), targets.flatten(), **shape)


def make_optimizer(options: Options, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of options, with torch's defaults but for the learning rate."""
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[options.optimizer](model.parameters(), lr=options.learning_rate)


def prepare(options: Options, model: nn.Module, loader: DataLoader) -> Training:
    """Prepares a model for training by options.method. Private methods are Opacus', as a user gets them."""
    model.train()
    with phase("setup.optimizer"):
        optimizer = make_optimizer(options, model)
    criterion = nn.CrossEntropyLoss()
    if options.method == "vanilla":
        return Training(model, optimizer, criterion, loader)

    with phase("setup.privacy"):
        return _make_private(options, model, optimizer, criterion, loader)


def _make_private(
    options: Options, model: nn.Module, optimizer: torch.optim.Optimizer, criterion: nn.Module, loader: DataLoader
) -> Training:
    from opacus import PrivacyEngine

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Secure RNG turned off")
        engine = PrivacyEngine()
    # Said of every model's first layer, whose inputs never need gradients.
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    # Hooks on the model itself rather than a wrapper: modules then have the same paths under all methods. Poisson
    # sampling would change the batch size, and with it memory and time, from step to step.
    made = engine.make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=options.noise_multiplier,
        max_grad_norm=options.max_grad_norm,
        clipping=options.clipping,
        poisson_sampling=False,
        grad_sample_mode=GRAD_SAMPLE_MODES[options.method],
        wrap_model=False,
    )
    if options.method == "ghost":
        _, dp_optimizer, dp_criterion, loader = made
        return Training(model, dp_optimizer, dp_criterion, loader, private=True, two_pass=True)
    _, dp_optimizer, loader = made
    return Training(model, dp_optimizer, criterion, loader, private=True)
