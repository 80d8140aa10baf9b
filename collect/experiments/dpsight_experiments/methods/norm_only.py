"""Makes one backward pass that computes ghost norms and does not use them.

The method norm_only clips nothing and adds no noise, so it is not private, and no step toward privacy. Some profilers
of DP training have timed this pass as if it were ghost clipping. The method makes their figures comparable.
"""

from __future__ import annotations

import torch
from opacus.grad_sample import GradSampleHooksFastGradientClipping
from torch import nn
from torch.utils.data import DataLoader

from dpsight_experiments.methods.training import Training
from dpsight_experiments.options import Options


def prepare(
    _options: Options, model: nn.Module, optimizer: torch.optim.Optimizer, criterion: nn.Module, loader: DataLoader
) -> Training:
    """Attaches ghost clipping's hooks to a model that is otherwise trained without privacy, on one scalar loss.

    zero_grad() keeps the gradients, as that of Opacus' optimizers does. Norms refer to the loss on which backward is
    called: with physical batches smaller than the logical batch that loss is scaled, and so are the norms.
    """
    GradSampleHooksFastGradientClipping(model, loss_reduction="mean", use_ghost_clipping=True)
    return Training(model, optimizer, criterion, loader, zero_grad="keep")
