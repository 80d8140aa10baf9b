"""Tests the methods of the clipping package in training loops. test_gradients also checks their sums."""

from __future__ import annotations

import unittest
import warnings
from collections import Counter

import torch
from dpsight_experiments.clipping import METHODS, TWO_PASS, ClippingEngine, Private, make_private
from dpsight_experiments.clipping.tiles import WHOLE, Tiles, gram_cost
from dpsight_experiments.mlp import MLP
from dpsight_experiments.options import UsageError
from dpsight_experiments.transformer import Transformer
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from tests.reference import norm, per_example_loop

ONE_PASS = [m for m in METHODS if m not in TWO_PASS]
SMALL = Tiles(side=5, bytes=2 << 10)


class Odd(nn.Module):
    """A model with layers that have no norm rule: a convolution, and a module with a parameter of its own."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = nn.Parameter(torch.ones(8))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.by

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.scale, self.out = nn.Conv1d(4, 8, 3), self.Scale(), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.scale(self.conv(x.transpose(1, 2)).transpose(1, 2)).tanh().mean(1))


class Shared(nn.Module):
    """A model whose embedding shares its weight with the head, by assignment or by a call."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.tied, self.wte, self.head = tied, nn.Embedding(9, 6), nn.Linear(6, 9, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.wte(ids).mean(1)
        return self.head(hidden) if self.tied else self.head(hidden) + nn.functional.linear(hidden, self.wte.weight)


class Twice(nn.Module):
    """A model that calls a layer `calls` times, such as twice or not at all."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls, self.inner, self.out = calls, nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.calls):
            x = self.inner(x)
        return self.out(x)


def features(width: int = 6, classes: int = 3, samples: int = 4) -> tuple[Tensor, Tensor]:
    return torch.randn(samples, width), torch.randint(classes, (samples,))


class Base(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        catcher = warnings.catch_warnings()
        catcher.__enter__()
        self.addCleanup(catcher.__exit__, None, None, None)
        warnings.simplefilter("ignore")

    def private(self, method: str, model: nn.Module, x: Tensor, y: Tensor, **more: object) -> Private:
        """Makes a model private with SGD, and without noise unless `more` asks for it."""
        settings = {"noise_multiplier": 0.0, "max_grad_norm": 1.0, "engine": ClippingEngine(tiles=SMALL)} | more
        return make_private(
            method,
            model=model.train(),
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            criterion=nn.CrossEntropyLoss(),
            data_loader=DataLoader(TensorDataset(x, y), batch_size=len(x)),
            **settings,
        )

    def loss(self, private: Private, model: nn.Module, x: Tensor, y: Tensor) -> object:
        out = model(x)
        shape = {"shape": out.shape} if private.two_pass and out.dim() == 3 else {}
        return private.criterion(out.reshape(-1, out.size(-1)), y.reshape(-1), **shape)

    def step(self, private: Private, model: nn.Module, x: Tensor, y: Tensor) -> None:
        private.optimizer.zero_grad()
        self.loss(private, model, x, y).backward()
        private.optimizer.step()

    def equals_loop(self, method: str, model: nn.Module, x: Tensor, y: Tensor) -> Private:
        bound = sorted(per_example_loop(model, x, y, 1.0).norms)[len(x) // 2]
        expected = per_example_loop(model, x, y, bound).clipped
        private = self.private(method, model, x, y, max_grad_norm=bound)
        self.step(private, model, x, y)
        delta = {name: p.summed_grad - expected[name] for name, p in model.named_parameters()}
        self.assertLess(norm(delta), 1e-4 * norm(expected))
        return private


class MethodTest(Base):
    def test_layers_without_rules(self) -> None:
        for method in METHODS:
            with self.subTest(method=method):
                x, y = torch.randn(4, 9, 4), torch.randint(5, (4,))
                private = self.equals_loop(method, Odd(), x, y)
                taken = {type(m).__name__: how for m, how in private.hooks.norm_by.items()}
                self.assertEqual(taken["Conv1d"], "per_sample")
                self.assertEqual(taken["Scale"], "per_sample")

    def test_each_layer_says_how_its_norm_was_taken(self) -> None:
        expected = {
            "mixed_ghost": {("Linear", "ghost"): 5, ("Linear", "per_sample"): 8, ("Embedding", "ghost"): 1,
                            ("Embedding", "per_sample"): 1, ("LayerNorm", "per_sample"): 5},
            "flash": {("Linear", "tiled_outer"): 8, ("Linear", "tiled_gram"): 5, ("Embedding", "grouped"): 2,
                      ("LayerNorm", "per_sample"): 5},
            "bk": {("Linear", "ghost"): 13, ("Embedding", "ghost"): 2, ("LayerNorm", "per_sample"): 5},
        }  # fmt: skip
        expected["flash_bk"] = expected["flash"]
        for method, counts in expected.items():
            with self.subTest(method=method):
                model = Transformer(vocab_size=60, dim=16, layers=2, heads=2, seq_len=12, checkpointing=False)
                x, y = torch.randint(60, (3, 12)), torch.randint(60, (3, 12))
                private = self.equals_loop(method, model, x, y)
                found = Counter((type(m).__name__, how) for m, how in private.hooks.norm_by.items())
                self.assertEqual(dict(found), counts)

    def test_noise_and_accountant(self) -> None:
        for method in METHODS:
            with self.subTest(method=method):
                x, y = features(300, 200)
                model, engine = MLP([300, 200, 200]), ClippingEngine()
                private = self.private(method, model, x, y, noise_multiplier=2.0, max_grad_norm=0.5, engine=engine)
                for skip in (True, False):
                    private.optimizer.signal_skip_step(skip)
                    self.step(private, model, x, y)
                noise = torch.cat([(p.grad * len(x) - p.summed_grad).flatten() for p in model.parameters()])
                self.assertAlmostEqual(noise.std().item(), 1.0, delta=0.02)
                self.assertEqual(engine.accountant.history, [(2.0, 1.0, 1)])

    def test_evaluation_between_steps(self) -> None:
        for method in METHODS:
            with self.subTest(method=method):
                model, (x, y) = MLP([6, 5, 3]), features()
                private = self.private(method, model, x, y)
                for training in (True, False):
                    self.step(private, model, x, y)
                    with torch.no_grad():
                        model.train(training)(x)
                    model.eval()(x)
                    model.train()
                self.step(private, model, x, y)

    def test_hooks_can_be_removed(self) -> None:
        for method in METHODS:
            with self.subTest(method=method):
                model, (x, y) = MLP([6, 5, 3]), features()
                self.private(method, model, x, y).hooks.cleanup()
                nn.functional.cross_entropy(model(x), y).backward()
                self.assertTrue(all(p.grad is not None for p in model.parameters()))

    def test_refusals_of_models(self) -> None:
        ids, y = torch.randint(9, (4, 3)), torch.randint(9, (4,))
        strange = nn.Sequential(nn.Embedding(9, 3, scale_grad_by_freq=True), nn.Flatten(), nn.Linear(9, 9))
        for method in METHODS:
            with self.subTest(method=method):
                with self.assertRaisesRegex(UsageError, "shared parameter: wte.weight is head.weight too"):
                    self.private(method, Shared(tied=True), ids, y)
                with self.assertRaisesRegex(UsageError, "cannot serve 0: an embedding with scale_grad_by_freq"):
                    self.private(method, strange, ids, y)
                model, (x, z) = Twice(2), features()
                private = self.private(method, model, x, z)
                with self.assertRaisesRegex(UsageError, "layer inner is called again"):
                    self.step(private, model, x, z)

    def test_refusals_of_clipping(self) -> None:
        for method in METHODS:
            for clipping, bound in (("per_layer", [1.0] * 4), ("adaptive", 1.0)):
                if method in TWO_PASS or clipping == "adaptive":
                    why = f"clipping {clipping} is not supported with method {method}"
                    with self.assertRaisesRegex(UsageError, why):
                        self.private(method, MLP([6, 5, 3]), *features(), clipping=clipping, max_grad_norm=bound)
        with self.assertRaisesRegex(UsageError, "clipping per_layer takes a list of norms"):
            self.private("bk", MLP([6, 5, 3]), *features(), clipping="per_layer")


class BookKeepingTest(Base):
    def test_backward_computes_no_parameter_gradient(self) -> None:
        widths, samples = (40, 30, 20, 10), 4
        x, y = features(widths[0], widths[-1], samples)
        model = MLP(list(widths))
        private = self.private("bk", model, x, y)
        private.optimizer.zero_grad()
        loss = self.loss(private, model, x, y)
        with FlopCounterMode(display=False) as counter:
            loss.backward()
        self.assertTrue(all(p.grad is None for p in model.parameters()))
        self.assertTrue(all(p.requires_grad for p in model.parameters()))
        layers = list(zip(widths, widths[1:], strict=False))
        to_inputs = sum(2 * samples * d * p for d, p in layers[1:])  # the first layer's input needs no gradient
        of_norms = sum(2 * samples * gram_cost(1, d, p, WHOLE.side) for d, p in layers)
        self.assertEqual(counter.get_total_flops(), to_inputs + of_norms)

    def test_what_is_kept(self) -> None:
        for method in ONE_PASS:
            with self.subTest(method=method):
                model, (x, y) = MLP([6, 5, 3]), features()
                private = self.private(method, model, x, y)
                self.loss(private, model, x, y).backward()
                layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
                self.assertEqual([tuple(m.backprops.shape) for m in layers], [(4, 5), (4, 3)])
                self.assertEqual([tuple(m.activations[0][0].shape) for m in layers], [(4, 6), (4, 5)])
                private.optimizer.step()
                self.assertFalse(any(hasattr(m, "backprops") or m.activations for m in layers))

    def test_per_layer_clipping_is_by_parameter(self) -> None:
        for method in ONE_PASS:
            model, (x, y) = MLP([6, 5, 3]), features()
            bounds = [0.05, 0.01, 100.0, 0.2]
            expected = [torch.zeros_like(p) for p in model.parameters()]
            for i in range(len(x)):
                loss = nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
                rows = torch.autograd.grad(loss, list(model.parameters()))
                for total, row, bound in zip(expected, rows, bounds, strict=True):
                    total += row * min(1.0, bound / row.norm().item())
            private = self.private(method, model, x, y, clipping="per_layer", max_grad_norm=bounds)
            self.assertAlmostEqual(private.optimizer.max_grad_norm, torch.tensor(bounds).norm().item(), places=4)
            self.step(private, model, x, y)
            for p, total in zip(model.parameters(), expected, strict=True):
                self.assertLess((p.summed_grad - total).norm(), 1e-4 * total.norm())

    def test_use_of_a_parameter_outside_its_layer(self) -> None:
        ids, y = torch.randint(9, (4, 3)), torch.randint(9, (4,))
        for method in ONE_PASS:
            model = Shared(tied=False)
            private = self.private(method, model, ids, y)
            with self.assertRaisesRegex(UsageError, "parameter wte.weight is used outside its layer's call"):
                self.step(private, model, ids, y)

    def test_layer_that_backward_does_not_reach(self) -> None:
        for method in ONE_PASS:
            model, (x, y) = Twice(0), features()
            with self.assertRaisesRegex(UsageError, "backward has not come to layer inner"):
                self.step(self.private(method, model, x, y), model, x, y)

    def test_step_after_a_failed_one(self) -> None:
        for method in ONE_PASS:
            with self.subTest(method=method):
                model, (x, y) = MLP([6, 5, 3]), features()
                expected = per_example_loop(model, x, y, 1.0).clipped
                private = self.private(method, model, x, y)
                self.loss(private, model, 2 * x, y).backward()  # a backward without a step
                with self.assertRaisesRegex(UsageError, "layer layers.0 is called again"):
                    model(x)
                with self.assertRaises(RuntimeError):  # an input of a wrong width makes a layer raise
                    private.optimizer.zero_grad()
                    model(x[:, 1:])
                self.assertTrue(all(p.requires_grad for p in model.parameters()))
                self.step(private, model, x, y)
                delta = {name: p.summed_grad - expected[name] for name, p in model.named_parameters()}
                self.assertLess(norm(delta), 1e-4 * norm(expected))


if __name__ == "__main__":
    unittest.main()
