"""Computes clipped gradients from the tensors that book-keeping keeps: Σ_b w_b · (gradient of sample b), added to
p.summed_grad.

The weights w [B] are the samples' clipping factors, multiplied by the batch size if the loss was a mean. The weights
are float32, and scale a copy of the narrower operand, with each element rounded once: a weight rounded to bfloat16
would let a whole sample exceed its norm by up to 0.4 %. The copy is made in chunks of tokens that take at most
Tiles.bytes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dpsight_experiments.clipping.norms import by_token
from dpsight_experiments.clipping.tiles import Tiles, as_operand, operand_type, product, spans, token_sums

Weights = dict[nn.Parameter, Tensor]


def summed(p: nn.Parameter) -> Tensor:
    """Returns the parameter's clipped sum so far."""
    if p.summed_grad is None:
        p.summed_grad = torch.zeros_like(p, requires_grad=False)
    return p.summed_grad


def add_linear(layer: nn.Linear, a: Tensor, g: Tensor, weights: Weights, tiles: Tiles) -> None:
    """Adds the clipped gradients of nn.Linear."""
    a, g = by_token(a), by_token(g)
    if layer.weight in weights:
        _add_products(summed(layer.weight), a, g, weights[layer.weight], tiles)
    if layer.bias is not None and layer.bias in weights:
        gradients = token_sums(g)
        summed(layer.bias).add_(weights[layer.bias].to(gradients.dtype) @ gradients)


def _add_products(out: Tensor, a: Tensor, g: Tensor, weights: Tensor, tiles: Tiles) -> None:
    scales = weights.unsqueeze(1).expand(a.shape[:2]).reshape(-1, 1)
    a, g = a.flatten(0, 1), g.flatten(0, 1)
    narrow = min(a.size(1), g.size(1))
    # Bytes of a row: the scaled narrower operand, and both operands in the type in which they are multiplied.
    widened = operand_type(g).itemsize * (g.dtype != operand_type(g))
    row = narrow * (g.element_size() + widened) + max(a.size(1), g.size(1)) * (g.element_size() + widened)
    for r0, r1 in spans(len(a), max(1, tiles.bytes // row)):
        x, y, scale = g[r0:r1], a[r0:r1], scales[r0:r1]
        if g.size(1) == narrow:
            x, y = _scaled(x, scale, g), as_operand(y, g)
        else:
            x, y = as_operand(x, g), _scaled(y, scale, g)
        if x.dtype == out.dtype:
            out.addmm_(x.mT, y)
        else:  # the product has another type: it is added by rows, since it would be a second gradient
            for i0, i1 in spans(len(out), max(1, tiles.bytes // (4 * out.size(1)))):
                out[i0:i1].add_(product(x[:, i0:i1].mT, y))
        del x, y


def _scaled(x: Tensor, scale: Tensor, g: Tensor) -> Tensor:
    """Returns x times scale [N, 1], in the type of g, as an operand."""
    return torch.mul(x, scale, out=torch.empty_like(x, dtype=g.dtype)).to(operand_type(g))


def add_embedding(layer: nn.Embedding, ids: Tensor, g: Tensor, weights: Weights, tiles: Tiles) -> None:
    """Adds the clipped gradient of nn.Embedding."""
    out, scales = summed(layer.weight), weights[layer.weight].to(g.dtype)
    ids = ids.unsqueeze(1) if ids.dim() == 1 else ids.flatten(1)
    scales = scales.unsqueeze(1).expand(ids.shape)
    if layer.padding_idx is not None:
        scales = scales.masked_fill(ids == layer.padding_idx, 0)
    ids, scales, g = ids.flatten(), scales.reshape(-1, 1), g.reshape(ids.numel(), layer.embedding_dim)
    row = layer.embedding_dim * (g.element_size() + out.element_size())
    for r0, r1 in spans(len(ids), max(1, tiles.bytes // row)):
        out.index_add_(0, ids[r0:r1], (g[r0:r1] * scales[r0:r1]).to(out.dtype))


def add_samples(p: nn.Parameter, gradients: Tensor, weights: Tensor) -> None:
    """Adds per-sample gradients [B, …] after clipping them."""
    summed(p).add_(torch.einsum("i,i...", weights.to(p.dtype), gradients.to(p.dtype)))
