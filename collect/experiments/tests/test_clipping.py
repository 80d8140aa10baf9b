"""Tests norms and clipped gradients of single layers against per-sample gradients that are computed directly."""

from __future__ import annotations

import collections
import itertools
import unittest
from pathlib import Path
from typing import Any

import torch
from dpsight_experiments.clipping import gradients, norms
from dpsight_experiments.clipping.tiles import TILES, WHOLE, Tiles, cheaper_form, gram_cost, outer_cost
from dpsight_experiments.models import make_model
from dpsight_experiments.options import parse
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SIDE = 8
SMALL = Tiles(side=SIDE, bytes=6 << 10)
BOUNDS = {
    "small": SMALL,
    "tight": Tiles(side=SIDE, bytes=64),
    "none": Tiles(side=3, bytes=0),
    "default": TILES,
    "whole": WHOLE,
}
FORMS = ("tiled_gram", "tiled_outer")
TOKENS = (1, SIDE - 1, SIDE, SIDE + 1, 3 * SIDE + 2)


class Peak(TorchDispatchMode):
    """Measures the most bytes that tensors made under this mode hold at once. Peak does not see memory inside
    operators."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[Any, int] = {}
        self.bytes = 0

    def __torch_dispatch__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        out = function(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, Tensor) and t.untyped_storage()._cdata not in given:
                self._made(t.untyped_storage())
        return out

    def _made(self, storage: torch.UntypedStorage) -> None:
        ref = storage._weak_ref()
        self.live[ref] = storage.nbytes()
        for r in [r for r in self.live if torch.UntypedStorage._expired(r)]:
            torch.UntypedStorage._free_weak_ref(r)
            del self.live[r]
        self.bytes = max(self.bytes, sum(self.live.values()))


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, device=DEVICE).to(dtype)


def linear_samples(a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Returns per-sample gradients of weight and bias in double precision, with activations rounded to g's type."""
    g, a = norms.by_token(g).double(), norms.by_token(a).to(g.dtype).double()
    return torch.einsum("btp,btd->bpd", g, a), g.sum(1)


def embedding_samples(layer: nn.Embedding, ids: Tensor, g: Tensor) -> Tensor:
    """Returns per-sample gradients of an embedding, by autograd."""
    out = []
    for one, gradient in zip(ids, g, strict=True):
        layer.weight.grad = None
        layer(one).backward(gradient)
        out.append(layer.weight.grad)
    layer.weight.grad = None
    return torch.stack(out).double() if out else torch.zeros(0, *layer.weight.shape, device=DEVICE).double()


def layer_norm_samples(layer: nn.LayerNorm, a: Tensor, g: Tensor) -> dict[nn.Parameter, Tensor]:
    """Returns per-sample gradients of a layer norm, by autograd."""
    parameters = list(layer.parameters())
    rows = [torch.autograd.grad(layer(x), parameters, y) for x, y in zip(a, g, strict=True)]
    return {p: torch.stack(row).double() for p, row in zip(parameters, zip(*rows, strict=True), strict=True)}


class Base(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def near(self, actual: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
        """Checks that tensors are equal up to a tolerance relative to the largest expected value."""
        self.assertEqual(actual.shape, expected.shape)
        scale = expected.abs().max().item() if expected.numel() else 0
        delta = (actual.double() - expected.double()).abs().max().item() if expected.numel() else 0
        self.assertLessEqual(delta, tolerance * scale)


class LinearTest(Base):
    def test_norms(self) -> None:
        sizes = itertools.product(FORMS, BOUNDS, (1, 3), TOKENS, ((5, 3), (SIDE, SIDE + 1), (2 * SIDE + 3, SIDE - 1)))
        for form, bound, batch, tokens, (d, p) in sizes:
            with self.subTest(form=form, bound=bound, batch=batch, tokens=tokens, d=d, p=p):
                layer = nn.Linear(d, p, device=DEVICE)
                a, g = random(batch, tokens, d), random(batch, tokens, p)
                weight, bias = linear_samples(a, g)
                found = norms.linear(layer, a, g, form, BOUNDS[bound])
                self.near(found[layer.weight], weight.flatten(1).norm(dim=1))
                self.near(found[layer.bias], bias.norm(dim=1))

    def test_inputs_of_other_dimensions(self) -> None:
        for shape in ((3,), (3, 2, 5), (0,), (0, 7), (1, 2, 3, 4)):
            for form in FORMS:
                with self.subTest(shape=shape, form=form):
                    layer = nn.Linear(6, 4, device=DEVICE)
                    a, g = random(*shape, 6), random(*shape, 4)
                    weight, bias = linear_samples(a, g)
                    found = norms.linear(layer, a, g, form, SMALL)
                    self.near(found[layer.weight], weight.flatten(1).norm(dim=1))
                    self.near(found[layer.bias], bias.norm(dim=1))

    def test_frozen_parameters_have_no_norm(self) -> None:
        layer = nn.Linear(6, 4, device=DEVICE)
        layer.weight.requires_grad_(False)
        self.assertEqual(list(norms.linear(layer, random(2, 3, 6), random(2, 3, 4), "tiled_gram", SMALL)), [layer.bias])

    def test_bfloat16_is_summed_in_float32(self) -> None:
        for form, mixed, bound in itertools.product(FORMS, (False, True), ("small", "default")):
            with self.subTest(form=form, mixed=mixed, bound=bound):
                layer = nn.Linear(9, 7, device=DEVICE)
                a = random(2, 300, 9, dtype=torch.float32 if mixed else torch.bfloat16) + 1
                g = random(2, 300, 7, dtype=torch.bfloat16) + 1
                weight, bias = linear_samples(a, g)
                found = norms.linear(layer, a, g, form, BOUNDS[bound])
                self.assertEqual(found[layer.weight].dtype, torch.float32)
                self.near(found[layer.weight], weight.flatten(1).norm(dim=1))
                self.near(found[layer.bias], bias.norm(dim=1))

    def test_float16_does_not_overflow(self) -> None:
        for form in FORMS:
            layer = nn.Linear(64, 64, device=DEVICE)
            a, g = (torch.full((1, 512, 64), 30.0, dtype=torch.float16, device=DEVICE) for _ in range(2))
            expected = linear_samples(a, g)[0].flatten(1).norm(dim=1)
            self.assertGreater(expected.item(), torch.finfo(torch.float16).max)
            self.near(norms.linear(layer, a, g, form, TILES)[layer.weight], expected)

    def test_temporaries_stay_below_the_bound(self) -> None:
        for form, batch, tokens, d, p in itertools.product(FORMS, (1, 3), (100,), (112,), (120, 160)):
            for dtype in (torch.float32, torch.bfloat16):
                layer = nn.Linear(d, p, bias=False, device=DEVICE)
                a, g = random(batch, tokens, d), random(batch, tokens, p, dtype=dtype)
                peaks = {}
                for bound in (Tiles(side=32, bytes=24 << 10), Tiles(side=32, bytes=48 << 10), WHOLE):
                    with Peak() as peak:
                        norms.linear(layer, a, g, form, bound)
                    peaks[bound.bytes] = peak.bytes
                    with self.subTest(form=form, batch=batch, tokens=tokens, p=p, dtype=dtype, bytes=bound.bytes):
                        self.assertLessEqual(peak.bytes, bound.bytes + 1024)  # the norms themselves
                self.assertGreater(peaks[WHOLE.bytes], 48 << 10, "the bound does not bind")

    def test_clipped_gradients(self) -> None:
        types = (torch.float32, torch.bfloat16)
        sizes = itertools.product(BOUNDS, (0, 1, 3), TOKENS, ((5, 3), (SIDE, SIDE + 1)), types)
        for bound, batch, tokens, (d, p), dtype in sizes:
            with self.subTest(bound=bound, batch=batch, tokens=tokens, d=d, p=p, dtype=dtype):
                layer = nn.Linear(d, p, device=DEVICE)
                layer.weight.summed_grad, layer.bias.summed_grad = None, torch.ones(p, device=DEVICE)
                a, g = random(batch, tokens, d), random(batch, tokens, p, dtype=dtype)
                weight, bias = linear_samples(a, g)
                weights = {q: torch.rand(batch, device=DEVICE) for q in layer.parameters()}
                with torch.no_grad():
                    gradients.add_linear(layer, a, g, weights, BOUNDS[bound])
                tolerance = 1e-5 if dtype == torch.float32 else 1e-2
                expected = torch.einsum("b,bpd->pd", weights[layer.weight].double(), weight)
                self.near(layer.weight.summed_grad, expected, tolerance)
                self.near(layer.bias.summed_grad, 1 + weights[layer.bias].double() @ bias)

    def test_copies_for_clipped_gradients_stay_below_the_bound(self) -> None:
        for d, p, dtype in itertools.product((64,), (32, 160), (torch.float32, torch.bfloat16)):
            layer = nn.Linear(d, p, bias=False, device=DEVICE)
            a, g = random(4, 100, d), random(4, 100, p, dtype=dtype)
            peaks = []
            for bound in (Tiles(bytes=16 << 10), WHOLE):
                layer.weight.summed_grad = torch.zeros_like(layer.weight)
                with torch.no_grad(), Peak() as peak:
                    gradients.add_linear(layer, a, g, {layer.weight: torch.rand(4, device=DEVICE)}, bound)
                peaks.append(peak.bytes)
            with self.subTest(p=p, dtype=dtype):
                scales = 4 * 100 * 4
                self.assertLessEqual(peaks[0], (16 << 10) * 2 + scales)  # copies, and rows of their product
                self.assertGreater(peaks[1], peaks[0])


class CostTest(Base):
    def test_counts_are_what_is_computed(self) -> None:
        for tokens, (d, p) in itertools.product((1, 7, 8, 9, 16, 29), ((5, 3), (16, 20))):
            a, g, layer = random(3, tokens, d), random(3, tokens, p), nn.Linear(d, p, bias=False, device=DEVICE)
            for form, cost in (
                ("tiled_gram", gram_cost(tokens, d, p, SIDE)),
                ("tiled_outer", outer_cost(tokens, d, p)),
            ):
                with self.subTest(tokens=tokens, d=d, p=p, form=form), FlopCounterMode(display=False) as counter:
                    norms.linear(layer, a, g, form, Tiles(side=SIDE))
                self.assertEqual(counter.get_total_flops(), 2 * 3 * cost)

    def test_choice(self) -> None:
        self.assertEqual(cheaper_form(1, 5120, 2560, TILES), "tiled_gram")
        self.assertEqual(cheaper_form(16384, 2048, 32000, TILES), "tiled_outer")
        self.assertEqual(cheaper_form(512, 4096, 4096, TILES), "tiled_gram")
        # The Gram matrix's symmetry saves half of the products only if there are many tiles.
        self.assertEqual(cheaper_form(3000, 4096, 4096, Tiles(side=64)), "tiled_gram")
        self.assertEqual(cheaper_form(3000, 4096, 4096, WHOLE), "tiled_outer")

    def test_documented_bytes(self) -> None:
        """The bytes of a sample's tiles without casts, and the samples that share the bound, are as docs/methods.md
        says."""
        for tokens, d, p, batch in itertools.product((16, 33, 100), (24, 112), (40, 160), (1, 3)):
            for bound in (Tiles(side=32, bytes=4 << 10), Tiles(side=32, bytes=8 << 10), Tiles(side=32, bytes=64 << 10)):
                side = min(bound.side, tokens)
                while 2 * side * side * 4 > bound.bytes:
                    side = (side + 1) // 2
                rows, columns = min(bound.side, p), min(bound.side, d)
                while rows * columns * 4 > bound.bytes:
                    rows, columns = (rows + 1) // 2, (columns + 1) // 2
                for form, sample in (("tiled_gram", 2 * side * side * 4), ("tiled_outer", rows * columns * 4)):
                    with self.subTest(form=form, tokens=tokens, d=d, p=p, batch=batch, bound=bound):
                        together = min(batch, max(1, bound.bytes // sample))
                        found = temporaries(form, batch, tokens, d, p, bound)
                        self.assertGreaterEqual(found, together * sample)
                        self.assertLessEqual(found, together * sample + 64)  # the norms themselves

    def test_documented_model(self) -> None:
        """The table of the headline model in docs/methods.md equals the computed costs."""
        options, _ = parse(["--method=flash", "--preset=seed"])
        tokens = options.seq_len
        layers = collections.Counter(
            (m.in_features, m.out_features)
            for m in make_model(options, torch.device("meta")).modules()
            if isinstance(m, nn.Linear)
        )
        lines, totals = [], [0, 0, 0]
        for (d, p), n in layers.items():
            costs = [tokens * tokens * (d + p), gram_cost(tokens, d, p, TILES.side), outer_cost(tokens, d, p)]
            totals = [total + n * cost for total, cost in zip(totals, costs, strict=True)]
            tera = " | ".join(f"{2 * cost / 1e12:.2f}" for cost in costs)
            mib = " | ".join(f"{temporaries(form, 1, tokens, d, p, TILES) / 2**20:.0f}" for form in FORMS)
            lines.append(f"| {d:,} → {p:,} | {n} | {tera} | `{cheaper_form(tokens, d, p, TILES)}` | {mib} |")
        tera = " | ".join(f"{2 * total / 1e12:.1f}" for total in totals)
        lines.append(f"| all | {layers.total()} | {tera} | | | |")
        docs = Path(__file__).resolve().parents[3] / "docs"
        table = (docs / "methods.md").read_text(encoding="utf-8").split("## The headline model")[1]
        self.assertEqual([line for line in table.splitlines() if line.startswith("| ")][1:], lines)
        claims = " ".join((docs / "claims.md").read_text(encoding="utf-8").split())
        for name, total in (("ghost", 2 * totals[0]), ("flash", 2 * totals[2])):
            self.assertIn(f"{total / 1e12:.0f} TFLOP", claims, name)


def temporaries(form: str, batch: int, tokens: int, d: int, p: int, bound: Tiles) -> int:
    """Returns the most bytes that computing a layer's norm holds, with inputs that take no memory."""
    layer = nn.Linear(d, p, bias=False, device="meta")
    a, g = torch.empty(batch, tokens, d, device="meta"), torch.empty(batch, tokens, p, device="meta")
    with Peak() as peak:
        norms.linear(layer, a, g, form, bound)
    return peak.bytes


class EmbeddingTest(Base):
    def test_norms_and_clipped_gradients(self) -> None:
        shapes = ((1, 1), (3, SIDE + 1), (2, 3, 5), (4,), (0, 6))
        for shape, bound, padding in itertools.product(shapes, BOUNDS, (None, 2)):
            with self.subTest(shape=shape, bound=bound, padding=padding):
                layer = nn.Embedding(6, 10, padding_idx=padding, device=DEVICE)
                ids, g = torch.randint(6, shape, device=DEVICE), random(*shape, 10)
                samples = embedding_samples(layer, ids, g)
                found = norms.embedding(layer, ids, g, BOUNDS[bound])
                self.near(found[layer.weight], samples.flatten(1).norm(dim=1))
                layer.weight.summed_grad, weights = None, torch.rand(shape[0], device=DEVICE)
                with torch.no_grad():
                    gradients.add_embedding(layer, ids, g, {layer.weight: weights}, BOUNDS[bound])
                self.near(layer.weight.summed_grad, torch.einsum("b,bvd->vd", weights.double(), samples))

    def test_bfloat16_is_summed_in_float32(self) -> None:
        layer = nn.Embedding(2, 4, device=DEVICE)
        g = torch.ones(1, 1000, 4, dtype=torch.bfloat16, device=DEVICE)
        found = norms.embedding(layer, torch.ones(1, 1000, dtype=torch.int64, device=DEVICE), g, SMALL)
        self.near(found[layer.weight], torch.tensor([2000.0], device=DEVICE))

    def test_temporaries_stay_below_the_bound(self) -> None:
        layer = nn.Embedding(50, 64, device=DEVICE)
        ids, g = torch.randint(50, (4, 30), device=DEVICE), random(4, 30, 64)
        sorting = 12 * ids.numel() * 8
        for bound, fits in ((Tiles(bytes=8 << 10), True), (WHOLE, False)):
            with Peak() as peak:
                norms.embedding(layer, ids, g, bound)
            self.assertEqual(peak.bytes <= (8 << 10) + sorting, fits, peak.bytes)


class LayerNormTest(Base):
    def test_gradients(self) -> None:
        shapes = ((2,), (1, 1), (3, SIDE + 1), (2, 600), (2, 3, 5))
        for shape, bound, bias in itertools.product(shapes, BOUNDS, (True, False)):
            with self.subTest(shape=shape, bound=bound, bias=bias):
                layer = nn.LayerNorm(12, bias=bias, device=DEVICE)
                a, g = random(*shape, 12), random(*shape, 12)
                found = norms.layer_norm_gradients(layer, a, g, BOUNDS[bound])
                expected = layer_norm_samples(layer, a, g)
                self.assertEqual(found.keys(), expected.keys())
                for p, samples in expected.items():
                    self.near(found[p], samples)
                for p, norm in norms.of_gradients(found).items():
                    self.near(norm, expected[p].flatten(1).norm(dim=1))

    def test_more_dimensions_and_no_samples(self) -> None:
        layer = nn.LayerNorm((3, 4), device=DEVICE)
        a, g = random(2, 5, 3, 4), random(2, 5, 3, 4)
        found, expected = norms.layer_norm_gradients(layer, a, g, SMALL), layer_norm_samples(layer, a, g)
        for p, samples in expected.items():
            self.near(found[p], samples)
        for found in norms.layer_norm_gradients(layer, a[:0], g[:0], SMALL).values():
            self.assertEqual(found.shape, (0, 3, 4))

    def test_temporaries_stay_below_the_bound(self) -> None:
        layer = nn.LayerNorm(64, device=DEVICE)
        a, g = random(3, 100, 64), random(3, 100, 64)
        for bound, fits in ((Tiles(bytes=8 << 10), True), (WHOLE, False)):
            with Peak() as peak:
                norms.layer_norm_gradients(layer, a, g, bound)
            self.assertEqual(peak.bytes <= (8 << 10) + 4 * 3 * 64 * 4, fits, peak.bytes)


if __name__ == "__main__":
    unittest.main()
