"""Book-keeping: one backward pass, whose hooks keep the tensors that the clipped gradients are computed from.

Backward computes no gradients of parameters. A layer runs with parameters that do not require grad, so autograd neither
computes their gradients nor keeps the layer's inputs for them. Only the hook keeps the inputs. If a layer's inputs do
not require grad either (token ids, features), its output gets an edge to a scalar that does. Otherwise backward would
not reach the layer. A parameter that is used outside its layer still gets a gradient in backward, which clipping would
not include, so such a use is refused.
"""

from __future__ import annotations

from typing import Any

import torch
from opacus.grad_sample.functorch import ft_compute_per_sample_gradient
from torch import Tensor, nn

from dpsight_experiments.clipping import gradients, norms
from dpsight_experiments.clipping.hooks import Hooks
from dpsight_experiments.clipping.refusals import path_of
from dpsight_experiments.clipping.tiles import WHOLE, Tiles
from dpsight_experiments.options import UsageError


class _Reached(torch.autograd.Function):
    """Gives an output an edge to a scalar that requires grad. The scalar gets no gradient."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, anchor: Tensor) -> Tensor:
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *_gradients: Any) -> tuple[None, None]:
        return None, None


class BookKeepingHooks(Hooks):
    """Keeps each layer's activations and output gradients until clip(), as module.activations and module.backprops.

    Norms are computed in backward, layer by layer: by Gram matrices, or by tiles if tiles are bounded. Layers other
    than nn.Linear and nn.Embedding keep their per-sample gradients instead, as p.grad_sample.
    """

    def __init__(self, model: nn.Module, *, tiles: Tiles = WHOLE, **arguments: Any) -> None:
        self.tiles = tiles
        # The number of samples in the batch if the loss is their mean, whose gradients are smaller by that factor; else
        # 1.
        self.scale = 1
        self._book: list[nn.Module] = []
        self._anchor = torch.zeros((), device=next(model.parameters()).device, requires_grad=True)
        super().__init__(model, **arguments)

    def add_hooks(self, **settings: Any) -> None:
        """Attaches the hooks, and further hooks that take the parameters out of autograd during their layer's call."""
        super().add_hooks(**settings)  # first, since functorch copies layers with their present hooks
        layers = list(self.iterate_submodules(self._module))
        self._parameters = {layer: [p for p in layer.parameters() if p.requires_grad] for layer in layers}
        handles: list[Any] = []
        for layer in layers:
            handles.append(layer.register_forward_pre_hook(self._take_parameters))
            handles.append(layer.register_forward_hook(self._return_parameters, prepend=True, always_call=True))
        for name, p in self._module.named_parameters():
            if p.requires_grad:
                handles.append(p.register_post_accumulate_grad_hook(lambda _p, name=name: self._unexpected(name)))
        self.autograd_grad_sample_hooks += handles

    def _take_parameters(self, layer: nn.Module, _inputs: Any) -> None:
        if self.hooks_enabled and layer.training and torch.is_grad_enabled():
            for p in self._parameters[layer]:
                p.requires_grad_(False)

    def _return_parameters(self, layer: nn.Module, _inputs: Any, _output: Any) -> None:
        for p in self._parameters[layer]:
            p.requires_grad_(True)

    def _unexpected(self, name: str) -> None:
        if self.hooks_enabled:
            raise UsageError(f"parameter {name} is used outside its layer's call, where book-keeping cannot clip it")

    def capture_activations_hook(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        """Keeps a layer's inputs, and makes sure that backward will reach the layer."""
        super().capture_activations_hook(module, inputs, output)
        if not module.__dict__.get("activations") or output.requires_grad:
            return None
        return _Reached.apply(output, self._anchor)

    @torch.no_grad()
    def capture_backprops_hook(
        self, module: nn.Module, _inputs: Any, output_gradients: Any, loss_reduction: str, batch_first: bool
    ) -> None:
        """Computes a layer's norms, and keeps its output gradients."""
        if not self.hooks_enabled:
            return
        (activations,), backprops = module.activations, output_gradients[0].detach()
        self.scale = len(backprops) if loss_reduction == "mean" else 1
        self._book.append(module)
        self.norm_by[module], taken = self._norms(module, activations, backprops)
        for p, norm in taken.items():
            p._norm_sample = norm.mul_(self.scale)
        for p in self._parameters[module]:
            p._forward_counter -= 1

    def _norms(self, module: nn.Module, activations: list[Tensor], backprops: Tensor) -> tuple[str, norms.Norms]:
        a, tiles = activations[0], self.tiles
        if type(module) is nn.Linear:
            module.backprops = backprops
            form = norms.linear_form(a, backprops, tiles) if tiles is not WHOLE else "tiled_gram"  # one tile
            return "ghost" if tiles is WHOLE else form, norms.linear(module, a, backprops, form, tiles)
        if type(module) is nn.Embedding:
            module.backprops = backprops
            return "ghost" if tiles is WHOLE else "grouped", norms.embedding(module, a, backprops, tiles)
        if type(module) is nn.LayerNorm:
            samples = norms.layer_norm_gradients(module, a, backprops, tiles)
        else:
            sampler = self.GRAD_SAMPLERS.get(type(module), ft_compute_per_sample_gradient)
            samples = {p: s for p, s in sampler(module, activations, backprops).items() if p.requires_grad}
        for p, sample in samples.items():
            p.grad_sample = sample
        module.activations.clear()
        return "per_sample", norms.of_gradients(samples)

    @torch.no_grad()
    def clip(self, weights: gradients.Weights) -> None:
        """Adds the sum of each layer's gradients, weighted by sample, to p.summed_grad, and releases the kept
        tensors."""
        book, self._book = self._book, []
        for module in book:
            mine = {p: weights[p] for p in self._parameters[module]}
            if type(module) in (nn.Linear, nn.Embedding):
                add = gradients.add_linear if type(module) is nn.Linear else gradients.add_embedding
                add(module, module.activations.pop()[0], module.backprops, mine, self.tiles)
                del module.backprops
            else:
                for p, weight in mine.items():
                    gradients.add_samples(p, p.grad_sample, weight)
                    p.grad_sample = None

    def check_complete(self) -> None:
        """Raises UsageError if backward has not come to every layer: that layer's gradient would be 0 without
        notice."""
        reached = set(self._book)
        for layer in self._parameters:
            if layer not in reached:
                raise UsageError(f"backward has not come to layer {path_of(layer, self._module)}: nothing to clip")

    def forget(self) -> None:
        """Releases the kept tensors of a batch that will not be clipped."""
        self._book.clear()
        for layer, parameters in self._parameters.items():
            layer.__dict__.pop("activations", None)
            layer.__dict__.pop("backprops", None)
            for p in parameters:
                p._forward_counter = 0
