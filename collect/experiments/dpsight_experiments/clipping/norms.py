"""Computes per-sample gradient norms of layers, without a T×T matrix or a per-sample gradient of a whole weight matrix.

linear and embedding take the layer, its activations (an embedding's ids) and its output gradients, whose first
dimension is the sample, and return a norm [B] for each trainable parameter. Gradients of biases and of LayerNorm's
parameters are vectors, held as a whole [B, p].
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dpsight_experiments.clipping.tiles import (
    SUMMED_TOKENS,
    Tiles,
    cheaper_form,
    samples_at_once,
    spans,
    squared_norms,
    sum_type,
    token_sums,
)

Norms = dict[nn.Parameter, Tensor]


def by_token(x: Tensor) -> Tensor:
    """Reshapes [B, …, d] to [B, T, d]. A sample without a token dimension has T = 1."""
    return x.unsqueeze(1) if x.dim() == 2 else x.flatten(1, -2)


def linear_form(a: Tensor, g: Tensor, tiles: Tiles) -> str:
    """Returns the form in which a weight's norm is computed: tiled_gram or tiled_outer."""
    a, g = by_token(a), by_token(g)
    return cheaper_form(a.size(1), a.size(2), g.size(2), tiles)


def linear(layer: nn.Linear, a: Tensor, g: Tensor, form: str, tiles: Tiles) -> Norms:
    """Returns the norms of nn.Linear. form: tiled_gram or tiled_outer."""
    out: Norms = {}
    a, g = by_token(a), by_token(g)
    if layer.weight.requires_grad:
        out[layer.weight] = squared_norms(a, g, form, tiles).sqrt_()
    if layer.bias is not None and layer.bias.requires_grad:
        out[layer.bias] = token_sums(g).norm(2, dim=1)
    return out


def embedding(layer: nn.Embedding, ids: Tensor, g: Tensor, tiles: Tiles) -> Norms:
    """Returns the norms of nn.Embedding.

    The gradient's row for an id is the sum of the output gradients at all positions with that id, so positions are
    grouped by id. A sample of T ids has at most T groups. Sorting numbers the groups without reading their count back
    to the host, which torch.unique would need. Each group is then summed, a tile of columns at a time.
    """
    if not layer.weight.requires_grad:
        return {}
    ids = ids.unsqueeze(1) if ids.dim() == 1 else ids.flatten(1)
    batch, tokens, d = *ids.shape, layer.embedding_dim
    g = g.reshape(batch, tokens, d)
    out = torch.zeros(batch, dtype=sum_type(g), device=g.device)
    if tokens == 0:
        return {layer.weight: out}
    groups = _groups(ids, layer.padding_idx)
    # Bytes of the sums and of the columns they are computed from. Columns are copied unless they are whole rows of the
    # right type.
    column = batch and (tokens + 1) * out.element_size() + tokens * (g.element_size() + out.element_size())
    columns = max(1, min(d, tiles.bytes // max(1, column)))
    for b0, b1 in spans(batch, samples_at_once(column * columns, tiles)):
        n = b1 - b0
        # Each sample's last row of sums collects the positions of padding_idx, which are not part of the gradient.
        index = (groups[b0:b1] + torch.arange(n, device=g.device).mul_(tokens + 1).unsqueeze(1)).flatten()
        for c0, c1 in spans(d, columns):
            sums = torch.zeros(n * (tokens + 1), c1 - c0, dtype=out.dtype, device=g.device)
            sums.index_add_(0, index, g[b0:b1, :, c0:c1].reshape(n * tokens, c1 - c0).to(out.dtype))
            sums = sums.square_().view(n, tokens + 1, c1 - c0)
            out[b0:b1].add_(sums[:, :tokens].sum((1, 2)))
            del sums
    return {layer.weight: out.sqrt_()}


def _groups(ids: Tensor, padding: int | None) -> Tensor:
    """Returns for each position of ids [B, T] the number of its id within the sample, from 0, and T for padding."""
    tokens = ids.size(1)
    ordered, places = ids.sort(dim=1)
    numbers = torch.zeros_like(places)
    numbers[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(1)
    if padding is not None:
        numbers.masked_fill_(ordered == padding, tokens)
    return torch.empty_like(numbers).scatter_(1, places, numbers)


def layer_norm_gradients(layer: nn.LayerNorm, a: Tensor, g: Tensor, tiles: Tiles) -> Norms:
    """Returns per-sample gradients [B, …] of nn.LayerNorm. The gradients have the parameters' sizes, and are summed
    over tokens in chunks."""
    shape = layer.normalized_shape
    batch, tokens, size = len(a), math.prod(a.shape[1 : -len(shape)]), math.prod(shape)
    a, g = a.reshape(batch, tokens, *shape), g.reshape(batch, tokens, *shape)
    kind = sum_type(g)
    out: Norms = {}
    weight = layer.weight if layer.weight is not None and layer.weight.requires_grad else None
    bias = layer.bias if layer.bias is not None and layer.bias.requires_grad else None
    if weight is not None:
        out[weight] = torch.zeros(batch, *shape, dtype=kind, device=g.device)
    if bias is not None:
        out[bias] = token_sums(g)
    # Bytes of the chunk in sum_type, of the normalized chunk, and of its product with the output gradients.
    token = size * (a.element_size() + 2 * kind.itemsize)
    chunk = max(1, min(tokens, SUMMED_TOKENS, tiles.bytes // max(1, token)))
    for b0, b1 in spans(batch if weight is not None else 0, samples_at_once(token * chunk, tiles)):
        for t0, t1 in spans(tokens, chunk):
            x = F.layer_norm(a[b0:b1, t0:t1].to(kind), shape, eps=layer.eps)
            out[weight][b0:b1].add_(x.mul_(g[b0:b1, t0:t1]).sum(1))
            del x
    return out


def of_gradients(gradients: Norms) -> Norms:
    """Returns the norms of per-sample gradients."""
    return {p: g.flatten(1).norm(2, dim=1) for p, g in gradients.items()}
