"""The result of preparing a model by a method: everything that the training loop needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader


@dataclass
class Training:
    """A model made ready for training by one method."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    # Computes from (logits, targets) a loss with backward(): the mean over samples of each sample's mean loss.
    criterion: Callable[..., Any]
    loader: DataLoader
    # Whether the optimizer is Opacus': it divides by the batch size itself, and step() is called for each physical
    # batch.
    private: bool = False
    # Between two backward passes the samples' losses are scaled, so the criterion must distinguish the sequences.
    two_pass: bool = False
    # What zero_grad() without an argument does, if the method differs from the optimizer's default.
    zero_grad: str = "default"

    def loss(self, logits: Tensor, targets: Tensor) -> Any:
        """Returns the loss of logits [B, T, V] or [B, C]. A sequence is one sample: its loss is the mean over its
        tokens."""
        if logits.dim() == 2:
            return self.criterion(logits, targets)
        # All sequences have the same length, so the mean over all tokens equals the mean over the sequences' means.
        shape = {"shape": logits.shape} if self.two_pass else {}
        return self.criterion(logits.flatten(0, 1), targets.flatten(), **shape)
