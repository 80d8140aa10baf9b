"""A multi-layer perceptron for classification."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn


class MLP(nn.Module):
    """Maps features [B, widths[0]] to logits [B, widths[-1]], with a ReLU between the layers."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width_in, width_out in pairwise(widths):
            layers += [nn.Linear(width_in, width_out), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)
