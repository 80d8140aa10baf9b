"""The training methods. Each prepares a model, an optimizer and a loss."""

from __future__ import annotations

import warnings
from importlib import import_module

import torch
from torch import nn
from torch.utils.data import DataLoader

from dpsight_experiments._agent import phase
from dpsight_experiments.methods.training import Training
from dpsight_experiments.options import Options

# The module of each method. A module is imported only when it is used: importing Opacus takes a second, which belongs
# to the set-up.
_MODULES = {
    "loop": "per_example",
    "dpsgd": "engine",
    "fgc": "engine",
    "ghost": "engine",
    "mixed_ghost": "beyond_opacus",
    "flash": "beyond_opacus",
    "bk": "beyond_opacus",
    "flash_bk": "beyond_opacus",
    "norm_only": "norm_only",
}


def make_optimizer(options: Options, model: nn.Module) -> torch.optim.Optimizer:
    """Returns the optimizer that the options name, with torch's defaults except for the learning rate."""
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[options.optimizer](model.parameters(), lr=options.learning_rate)


def prepare(options: Options, model: nn.Module, loader: DataLoader) -> Training:
    """Prepares a model for training by options.method. Methods of Opacus are prepared by Opacus, as users get them."""
    model.train()
    with phase("setup.optimizer"):
        optimizer = make_optimizer(options, model)
    criterion = nn.CrossEntropyLoss()
    if options.method == "vanilla":
        return Training(model, optimizer, criterion, loader)

    # torch prints this for each model's first layer, whose inputs need no gradients, and for functorch's embeddings.
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    warnings.filterwarnings("ignore", message=r"In \w+ autocast, but the target dtype is not supported")
    with phase("setup.privacy"):
        method = import_module(f"{__name__}.{_MODULES[options.method]}")
        return method.prepare(options, model, optimizer, criterion, loader)


__all__ = ["Training", "make_optimizer", "prepare"]
