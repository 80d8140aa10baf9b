"""The built-in models, by name."""

from __future__ import annotations

import torch
from torch import nn

from dpsight_experiments.mlp import MLP
from dpsight_experiments.options import Options
from dpsight_experiments.transformer import Transformer


def make_model(options: Options, device: torch.device) -> nn.Module:
    """Builds the model that the options describe, with torch's initial weights.

    The model is made on the device: drawing a billion weights on the host and copying them would take a minute instead
    of a second.
    """
    with torch.device(device):
        if options.model == "mlp":
            return MLP(options.mlp_widths)
        return Transformer(
            vocab_size=options.vocab_size,
            dim=options.hidden_dim,
            layers=options.num_layers,
            heads=options.num_heads,
            seq_len=options.seq_len,
            checkpointing=options.checkpointing,
        )
