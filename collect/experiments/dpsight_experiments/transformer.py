"""A decoder-only transformer language model, made of layers that DP methods support.

Every parameter is in a leaf `nn.Linear`, `nn.Embedding` or `nn.LayerNorm`. For a bare `nn.Parameter` (for positions,
say) Opacus would use functorch for the whole model, and it refuses `nn.MultiheadAttention`. The head is not tied to the
embedding, because ghost clipping does not support a parameter that is used twice. There are no buffers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Causal multi-head self-attention on [B, T, D]."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.o = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        def by_head(y: Tensor) -> Tensor:
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        y = F.scaled_dot_product_attention(by_head(self.q(x)), by_head(self.k(x)), by_head(self.v(x)), is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """A block's GELU MLP, whose hidden width is four times the model's."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """Maps token ids [B, T] to logits [B, T, vocab_size]. T is at most seq_len."""

    def __init__(
        self, *, vocab_size: int, dim: int, layers: int, heads: int, seq_len: int, checkpointing: bool = False
    ) -> None:
        super().__init__()
        self.checkpointing = checkpointing
        self.token_embedding = nn.Embedding(vocab_size, dim)
        self.position_embedding = nn.Embedding(seq_len, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.final_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding(ids) + self.position_embedding(positions(ids))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing and self.training else block(x)
        return self.head(self.final_norm(x))


def positions(ids: Tensor) -> Tensor:
    """Returns position ids 0…T-1 for each sample, [B, T] and contiguous.

    Per-sample gradients need the batch dimension. Opacus' norm of an embedding takes a `view` of the ids, which an
    expanded [T] or [1, T] does not allow. The ids take 8·B·T bytes for the step, and 8·T more temporarily.
    """
    return torch.arange(ids.size(1), device=ids.device).expand(ids.shape).contiguous()
