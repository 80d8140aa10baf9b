"""What a method makes of a model: all that the training loop needs."""

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
    # (logits, targets) to a loss with backward(), the mean over the samples of each sample's mean loss.
    criterion: Callable[..., Any]
    loader: DataLoader
    # Whether the optimizer is one of Opacus: it divides by the batch size itself, and takes each physical batch's step.
    private: bool = False
    # Two backward passes scale the samples' own losses in between, so the criterion must tell the sequences apart.
    two_pass: bool = False
    # What zero_grad() without an argument does, where the optimizer's own default is not what the method has.
    zero_grad: str = "default"

    def loss(self, logits: Tensor, targets: Tensor) -> Any:
        """The loss of logits [B, T, V] or [B, C]. A sequence is one sample: its loss is the mean over its tokens."""
        if logits.dim() == 2:
            return self.criterion(logits, targets)
        # All sequences are equally long, so the mean over all tokens is the mean over the sequences.
        shape = {"shape": logits.shape} if self.two_pass else {}
        return self.criterion(logits.flatten(0, 1), targets.flatten(), **shape)
