"""The hooks of the two-pass methods: Opacus' for ghost clipping, with norms of ours or with its own chosen by layer.

Opacus' hooks look norm samplers up in a table by the type of the layer. opacus.grad_sample.register_norm_sampler writes
to the table of the class, which all models of the process share; hooks here have a table of their own, so that ghost
clipping beside them stays Opacus'.
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
    """Opacus' hooks, which say how they took each layer's norm, and refuse a layer that is called twice by name."""

    def __init__(self, model: nn.Module, **arguments: Any) -> None:
        # From a layer's first norm on: the choice depends on the length of its input.
        self.norm_by: dict[nn.Module, str] = {}
        super().__init__(model, **arguments)

    def capture_activations_hook(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        """Keeps a layer's inputs."""
        recording = self.hooks_enabled and module.training and torch.is_grad_enabled()
        if recording and module.__dict__.get("activations"):
            raise called_twice(path_of(module, self._module))
        return super().capture_activations_hook(module, inputs, output)


class TiledHooks(Hooks):
    """Norms by tiles for nn.Linear, nn.Embedding and nn.LayerNorm; of other layers by their per-sample gradients."""

    def __init__(self, model: nn.Module, *, tiles: Tiles = TILES, **arguments: Any) -> None:
        self.tiles = tiles
        self.NORM_SAMPLERS = {nn.Linear: self._linear, nn.Embedding: self._embedding, nn.LayerNorm: self._layer_norm}
        super().__init__(model, **arguments)

    def capture_backprops_hook(self, module: nn.Module, *arguments: Any, **settings: Any) -> None:
        """Takes a layer's norm."""
        if self.hooks_enabled:
            self.norm_by[module] = "per_sample"  # unless a sampler of ours says otherwise
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
    """Ghost norms or per-sample gradients, whichever is smaller: Opacus computes both, and the choice is by layer."""

    def capture_backprops_hook(self, module: nn.Module, *arguments: Any, **settings: Any) -> None:
        """Takes a layer's norm by the way chosen for it, which Opacus' hook reads off use_ghost_clipping."""
        if not self.hooks_enabled:
            return
        self.use_ghost_clipping = type(module) in self.NORM_SAMPLERS and ghost_is_smaller(module)
        self.norm_by[module] = "ghost" if self.use_ghost_clipping else "per_sample"
        try:
            super().capture_backprops_hook(module, *arguments, **settings)
        finally:
            self.use_ghost_clipping = True


def ghost_is_smaller(layer: nn.Module) -> bool:
    """Whether 2T² < p·d: a sample's two Gram matrices have fewer entries than its gradient."""
    shape = layer.activations[-1][0].shape[1:]
    tokens = math.prod(shape if isinstance(layer, nn.Embedding) else shape[:-1])
    return 2 * tokens * tokens < layer.weight.numel()
