"""Computes exact per-sample gradient norms of a linear layer by tiles, and chooses between two forms.

A layer's per-sample gradient is the [p, d] matrix G = Σ_t g_t a_tᵀ, with activations a [T, d] and output gradients g
[T, p]. The squared norm of G is a sum over all entries of either of two matrices, with each entry needed once:

- gram:  Σ_{s,t} (a_s·a_t)(g_s·g_t), over [T, T]. Symmetric: tiles below the diagonal count twice, those above it are
  never computed.
- outer: Σ_{i,j} G_ij², over [p, d]. A tile must be whole before it is squared, so each sums over all tokens.

The cost for a sample, in multiply-adds, with tiles of τ tokens: gram (d+p)·(T² + Σ tile²)/2, outer T·d·p. The forms
gram and outer take the same memory: samples are grouped and tokens are split so that temporaries stay below
Tiles.bytes. So the cheaper form is the one with fewer multiply-adds.

Products are accumulated and kept in float32, whatever the inputs' type: sums over T² products would lose digits in
bfloat16 and overflow in float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tiles:
    """The sizes that temporaries may have."""

    # The side of a tile. A tile of 2,048² is 256 blocks of 128×128, the unit of a GEMM kernel: a single sample then
    # fills the 132 multiprocessors of an H100 or H200, while 1,024 would leave half of them idle.
    side: int = 2048
    # Bytes of all temporaries of one layer at a time: exactly two float32 tiles of 2,048².
    bytes: int = 32 << 20


TILES = Tiles()
# Number of tokens summed at a time: for more, torch's sum needs a staging buffer of up to 1 MiB for each of the GPU's
# multiprocessors.
SUMMED_TOKENS = 512
# A tile that contains everything, for book-keeping without tiles.
WHOLE = Tiles(side=1 << 62, bytes=1 << 62)


def spans(length: int, side: int) -> Iterator[tuple[int, int]]:
    """Yields the bounds of the tiles of a dimension."""
    for begin in range(0, length, side):
        yield begin, min(begin + side, length)


def gram_cost(tokens: int, d: int, p: int, side: int) -> int:
    """Returns the multiply-adds for one sample's norm in the gram form."""
    whole, rest = divmod(tokens, side)
    return (d + p) * (tokens * tokens + whole * side * side + rest * rest) // 2


def outer_cost(tokens: int, d: int, p: int) -> int:
    """Returns the multiply-adds for one sample's norm in the outer form."""
    return tokens * d * p


def cheaper_form(tokens: int, d: int, p: int, tiles: Tiles) -> str:
    """Returns the form with fewer multiply-adds: tiled_gram or tiled_outer."""
    return "tiled_gram" if gram_cost(tokens, d, p, tiles.side) <= outer_cost(tokens, d, p) else "tiled_outer"


def squared_norms(a: Tensor, g: Tensor, form: str, tiles: Tiles) -> Tensor:
    """Returns the squared norms [B], in float32, of a weight's per-sample gradients, from activations and output
    gradients.

    a [B, T, d] may have another type than g [B, T, p]: under autocast the layer multiplied its activations in g's type,
    so they are rounded to that type, tile by tile.
    """
    return (_gram if form == "tiled_gram" else _outer)(a, g, tiles)


def operand_type(g: Tensor) -> torch.dtype:
    """Returns the type in which products are computed: g's own if its products can be float32, else float32."""
    return g.dtype if g.is_cuda or g.dtype == torch.float64 else torch.float32


def as_operand(x: Tensor, g: Tensor) -> Tensor:
    """Returns x in the type of g, in which the layer multiplied it, for product()."""
    return x.to(g.dtype).to(operand_type(g))


def product(x: Tensor, y: Tensor) -> Tensor:
    """Returns x @ y in float32 (float64 for float64), for matrices or batches of matrices."""
    multiply = torch.bmm if x.dim() == 3 else torch.mm
    if x.dtype in (torch.float32, torch.float64):
        return multiply(x, y)
    return multiply(x, y, out_dtype=torch.float32)


def _cast_bytes(x: Tensor, g: Tensor) -> int:
    """Returns the bytes that as_operand allocates for each element of x."""
    rounded = g.dtype.itemsize if x.dtype != g.dtype else 0
    widened = operand_type(g).itemsize if g.dtype != operand_type(g) else 0
    return rounded + widened


def token_sums(x: Tensor) -> Tensor:
    """Returns the sums [B, …] over the tokens of x [B, T, …], in float32."""
    out = torch.zeros(len(x), *x.shape[2:], dtype=sum_type(x), device=x.device)
    for t0, t1 in spans(x.size(1), SUMMED_TOKENS):
        out.add_(x[:, t0:t1].sum(1, dtype=out.dtype))
    return out


def samples_at_once(bytes_per_sample: int, tiles: Tiles) -> int:
    """Returns the number of samples that are processed together."""
    return max(1, tiles.bytes // max(1, bytes_per_sample))


def _gram(a: Tensor, g: Tensor, tiles: Tiles) -> Tensor:
    batch, tokens, d = a.shape
    p = g.size(-1)
    out = torch.zeros(batch, dtype=sum_type(g), device=g.device)

    def needed(side: int) -> int:
        return 2 * side * side * out.element_size() + 2 * side * (d * _cast_bytes(a, g) + p * _cast_bytes(g, g))

    side = min(tiles.side, max(1, tokens))
    while side > 1 and needed(side) > tiles.bytes:
        side = (side + 1) // 2
    for b0, b1 in spans(batch, samples_at_once(needed(side), tiles)):
        for i0, i1 in spans(tokens, side):
            ai, gi = as_operand(a[b0:b1, i0:i1], g), as_operand(g[b0:b1, i0:i1], g)
            for j0, j1 in spans(i1, side):
                aj, gj = (ai, gi) if j0 == i0 else (as_operand(a[b0:b1, j0:j1], g), as_operand(g[b0:b1, j0:j1], g))
                tile = product(ai, aj.mT)
                tile.mul_(product(gi, gj.mT))
                out[b0:b1].add_(tile.sum((1, 2)), alpha=1 if j0 == i0 else 2)
                del tile, aj, gj
    return out.clamp_(min=0)  # where gradients cancel, rounding may leave a tiny negative number


def _outer(a: Tensor, g: Tensor, tiles: Tiles) -> Tensor:
    batch, tokens, d = a.shape
    p = g.size(-1)
    out = torch.zeros(batch, dtype=sum_type(g), device=g.device)
    cast_a, cast_g = _cast_bytes(a, g), _cast_bytes(g, g)

    def sums(rows: int, columns: int, chunk: int) -> int:
        return (2 if chunk < tokens else 1) * rows * columns * out.element_size()

    def casts(rows: int, columns: int, chunk: int) -> int:
        return chunk * (columns * cast_a + rows * cast_g)

    # Bytes of a tile and, if operands must be cast, of as many of their tokens as leave room. The larger of the two is
    # reduced.
    size = [min(tiles.side, p), min(tiles.side, d), max(1, tokens)]
    while sums(*size) + casts(*size) > tiles.bytes:
        if casts(*size) > sums(*size) and size[2] > 1:
            size[2] = (size[2] + 1) // 2
        elif max(size[:2]) > 1:
            size[:2] = (size[0] + 1) // 2, (size[1] + 1) // 2
        else:
            break
    rows, columns, chunk = size
    for b0, b1 in spans(batch, samples_at_once(sums(*size) + casts(*size), tiles)):
        for j0, j1 in spans(d, columns):
            for i0, i1 in spans(p, rows):
                tile = None
                for t0, t1 in spans(tokens, chunk):
                    x = as_operand(g[b0:b1, t0:t1, i0:i1], g)
                    y = as_operand(a[b0:b1, t0:t1, j0:j1], g)
                    part = product(x.mT, y)
                    tile = part if tile is None else tile.add_(part)
                    del x, y, part
                if tile is not None:
                    out[b0:b1].add_(tile.square_().sum((1, 2)))
                del tile
    return out


def sum_type(g: Tensor) -> torch.dtype:
    """Returns the type in which sums are computed."""
    return torch.float64 if g.dtype == torch.float64 else torch.float32
