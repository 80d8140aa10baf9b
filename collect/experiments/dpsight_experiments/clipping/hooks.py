"""The hooks of the two-pass methods: Opacus' hooks for ghost clipping, with this package's norms, or with Opacus' norms
chosen by layer.

Opacus' hooks look up norm samplers in a table by the layer's type. opacus.grad_sample.register_norm_sampler writes to
the class's table, which all models of the process share. Hooks here have their own table, so that ghost clipping in the
same process is still Opacus'.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from opacus.grad_sample import GradSampleHooksFastGradientClipping
from torch import Tensor, nn

from dpsight_experiments.clipping import norms
from dpsight_experiments.clipping.refusals import called_twice, path_of
from dpsight_experiments.clipping.tiles import TILES, Tiles


class Hooks(GradSampleHooksFastGradientClipping):
    """Opacus' hooks, extended in two ways: they tell how they computed each layer's norm, and they refuse by name a
    layer that is called twice."""

    def __init__(self, model: nn.Module, **arguments: Any) -> None:
        # Filled at a layer's first norm, since the choice depends on the length of its input.
        self.norm_by: dict[nn.Module, str] = {}
        super().__init__(model, **arguments)

    def capture_activations_hook(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        """Keeps a layer's inputs."""
        recording = self.hooks_enabled and module.training and torch.is_grad_enabled()
        if recording and module.__dict__.get("activations"):
            raise called_twice(path_of(module, self._module))
        return super().capture_activations_hook(module, inputs, output)


class TiledHooks(Hooks):
    """Computes norms by tiles for nn.Linear, nn.Embedding and nn.LayerNorm, and for other layers from their per-sample
    gradients."""

    def __init__(self, model: nn.Module, *, tiles: Tiles = TILES, **arguments: Any) -> None:
        self.tiles = tiles
        self.NORM_SAMPLERS = {nn.Linear: self._linear, nn.Embedding: self._embedding, nn.LayerNorm: self._layer_norm}
        super().__init__(model, **arguments)

    def capture_backprops_hook(self, module: nn.Module, *arguments: Any, **settings: Any) -> None:
        """Computes a layer's norm."""
        if self.hooks_enabled:
            self.norm_by[module] = "per_sample"  # unless one of this package's samplers changes it
        super().capture_backprops_hook(module, *arguments, **settings)

    def _linear(self, layer: nn.Linear, activations: list[Tensor], backprops: Tensor) -> norms.Norms:
        form = norms.linear_form(activations[0], backprops, self.tiles)
        self.norm_by[layer] = form
        return norms.linear(layer, activations[0], backprops, form, self.tiles)

    def _embedding(self, layer: nn.Embedding, activations: list[Tensor], backprops: Tensor) -> norms.Norms:
        self.norm_by[layer] = "grouped"
        return norms.embedding(layer, activations[0], backprops, self.tiles)

    def _layer_norm(self, layer: nn.LayerNorm, activations: list[Tensor], backprops: Tensor) -> norms.Norms:
        return norms.of_gradients(norms.layer_norm_gradients(layer, activations[0], backprops, self.tiles))


class MixedGhostHooks(Hooks):
    """Computes ghost norms or per-sample gradients, whichever is smaller. Opacus can compute both, and this class
    chooses for each layer."""

    def capture_backprops_hook(self, module: nn.Module, *arguments: Any, **settings: Any) -> None:
        """Computes a layer's norm in the chosen way, which Opacus' hook reads from use_ghost_clipping."""
        if not self.hooks_enabled:
            return
        self.use_ghost_clipping = type(module) in self.NORM_SAMPLERS and ghost_is_smaller(module)
        self.norm_by[module] = "ghost" if self.use_ghost_clipping else "per_sample"
        try:
            super().capture_backprops_hook(module, *arguments, **settings)
        finally:
            self.use_ghost_clipping = True


def ghost_is_smaller(layer: nn.Module) -> bool:
    """Reports whether 2T² < p·d: a sample's two Gram matrices then have fewer entries than its gradient."""
    shape = layer.activations[-1][0].shape[1:]
    tokens = math.prod(shape if isinstance(layer, nn.Embedding) else shape[:-1])
    return 2 * tokens * tokens < layer.weight.numel()
