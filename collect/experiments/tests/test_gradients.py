"""Tests that every method has the gradients and updates of the per-example loop."""

from __future__ import annotations

import itertools
import os
import statistics
import unittest
from collections.abc import Iterator
from unittest import mock

import torch
from dpsight_experiments.data import data_loader
from dpsight_experiments.loop import train_step
from dpsight_experiments.methods import Training, prepare
from dpsight_experiments.models import make_model
from dpsight_experiments.options import Options, UsageError, resolve, table
from opacus.grad_sample import GradSampleHooksFastGradientClipping
from torch import Tensor, nn

from tests.reference import Reference, norm, per_example_loop

# True if the tests also run the cases that `make test` leaves out.
WITH_REST = os.environ.get("DPSIGHT_TEST_WITH_REST") == "true"
CPU = torch.device("cpu")
TOLERANCE = 1e-4
SIZES = {
    "transformer": {"vocab_size": 50, "hidden_dim": 16, "num_layers": 2, "num_heads": 2, "seq_len": 12},
    "mlp": {"mlp_dims": "20,16,8"},
}
METHODS = [m["id"] for m in table()["methods"]]
DP_METHODS = [m for m in METHODS if m not in ("vanilla", "norm_only")]
CLIPPING = next(o["choices"] for o in table()["options"] if o["name"] == "clipping")
# BATCH is the average batch size of Poisson sampling. DRAWN are sizes that it may draw, one after another.
BATCH, DRAWN = 6, (3, 1, 0, 6, 2, 5)


def options_for(model: str, method: str, **more: object) -> Options:
    """Returns options of a small experiment without noise, with six samples and SGD."""
    given = {"method": method, "model": model, "preset": "tiny", "batch_size": BATCH, "noise_multiplier": 0.0}
    given |= {"optimizer": "sgd", "learning_rate": 0.5, "seed": 3} | SIZES[model] | more
    return resolve({name: str(value) for name, value in given.items()})


def accepted(model: str) -> Iterator[tuple[str, str]]:
    """Yields each DP method and clipping with which a model can be trained."""
    for method, clipping in itertools.product(DP_METHODS, CLIPPING):
        try:
            options_for(model, method, clipping=clipping)
        except UsageError:
            continue
        yield method, clipping


def setup(options: Options) -> tuple[nn.Module, Tensor, Tensor]:
    """Returns the model and the first batch, in which one sample differs from the others, so that the norms spread."""
    torch.manual_seed(options.seed)
    model = make_model(options, CPU)
    inputs, targets = next(iter(data_loader(options)))
    if options.model == "transformer":
        inputs[1], targets[1] = 7, 7  # the same token at each place
    else:
        inputs[1] *= 5
    return model, inputs, targets


def median_norm(options: Options) -> float:
    """Returns a clipping norm that clips some of the samples and not others."""
    model, inputs, targets = setup(options)
    norms = per_example_loop(model, inputs, targets, 1.0).norms
    return statistics.median(norms)


class GradientTest(unittest.TestCase):
    def assert_same(self, actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
        """Checks that the difference is at most 1e-4 of the whole norm, over all parameters and for each parameter."""
        self.assertEqual(actual.keys(), expected.keys())
        whole = norm(expected)
        difference = {name: actual[name] - expected[name] for name in expected}
        self.assertLessEqual(norm(difference), TOLERANCE * whole)
        for name, delta in difference.items():
            self.assertLessEqual(delta.double().norm().item(), TOLERANCE * whole, name)

    def check_steps(self, options: Options, sizes: tuple[int, ...] = (BATCH, BATCH)) -> None:
        """Trains a step for each batch size, and compares its sum, gradient and change of the weights with the
        loop's."""
        model, inputs, targets = setup(options)
        training = prepare(options, model, data_loader(options))
        plain = make_model(options, CPU)
        for size in sizes:
            plain.load_state_dict(model.state_dict())
            x, y = inputs[-size:] if size else inputs[:0], targets[-size:] if size else targets[:0]
            # Adaptive clipping changes the bound after each step.
            bound = float(training.optimizer.max_grad_norm) if training.private else 1.0
            reference = per_example_loop(plain, x, y, bound, per_layer=options.clipping == "per_layer")
            train_step(training, options, x, y, CPU)
            self.check_one(options, training, model, plain, reference)

    def check_one(
        self, options: Options, training: Training, model: nn.Module, before: nn.Module, reference: Reference
    ) -> None:
        expected = reference.clipped if training.private else reference.plain
        batch = options.batch_size
        parameters = dict(model.named_parameters())
        if training.private:
            self.assert_same({name: p.summed_grad for name, p in parameters.items()}, expected)
        self.assert_same({name: p.grad * batch for name, p in parameters.items()}, expected)
        step = {name: (p - parameters[name]).detach() for name, p in before.named_parameters()}
        scale = batch / options.learning_rate
        self.assert_same({name: delta * scale for name, delta in step.items()}, expected)

    def test_clipping_norm_clips_some_examples(self) -> None:
        for model in SIZES:
            with self.subTest(model=model):
                options = options_for(model, "dpsgd")
                bound = median_norm(options)
                whole, inputs, targets = setup(options)
                reference = per_example_loop(whole, inputs, targets, bound)
                self.assertGreater(norm(reference.clipped), 0)
                self.assertGreater(sum(n > 1.001 * bound for n in reference.norms), 0)
                self.assertGreater(sum(n < 0.999 * bound for n in reference.norms), 0)
                # If a method clipped nothing, or the batch as a whole, the result would be far outside the tolerance.
                for wrong in (1.0, min(1.0, bound * len(inputs) / norm(reference.plain))):
                    delta = {k: reference.plain[k] * wrong - v for k, v in reference.clipped.items()}
                    self.assertGreater(norm(delta), 50 * TOLERANCE * norm(reference.clipped))

    def test_dp_methods_equal_the_loop(self) -> None:
        for model in SIZES:
            bound = median_norm(options_for(model, "dpsgd"))
            for method, clipping in accepted(model):
                for physical in (BATCH, 3, 2, 1) if WITH_REST else (BATCH, 2):
                    if method == "loop" and physical > 1:
                        continue
                    with self.subTest(model=model, method=method, clipping=clipping, physical=physical):
                        more = {"max_grad_norm": bound, "physical_batch_size": physical, "clipping": clipping}
                        self.check_steps(options_for(model, method, **more))

    @unittest.skipUnless(WITH_REST, "LEFT OUT: make test-rest runs it")
    def test_batches_that_vary(self) -> None:
        for model in SIZES:
            bound = median_norm(options_for(model, "dpsgd"))
            for method, clipping in accepted(model):
                # A batch is one physical batch, or several, where only the last makes a step.
                for physical in (1,) if method == "loop" else (2, BATCH):
                    with self.subTest(model=model, method=method, clipping=clipping, physical=physical):
                        more = {"max_grad_norm": bound, "clipping": clipping, "physical_batch_size": physical}
                        drawn = DRAWN
                        if clipping == "adaptive":
                            drawn = tuple(size for size in DRAWN if size)
                        else:
                            more["poisson"] = True
                        self.check_steps(options_for(model, method, **more), drawn)

    def test_every_clipping_is_accepted_with_some_method(self) -> None:
        for model in SIZES:
            found = set(accepted(model))
            self.assertEqual({clipping for _, clipping in found}, set(CLIPPING))
            self.assertLessEqual({(method, "flat") for method in DP_METHODS}, found)

    def test_fast_gradient_clipping_takes_no_ghost_norm(self) -> None:
        samplers = GradSampleHooksFastGradientClipping.NORM_SAMPLERS
        for method, expected in (("fgc", 0), ("ghost", 2)):
            with self.subTest(method=method):
                options = options_for("mlp", method)
                model, inputs, targets = setup(options)
                training = prepare(options, model, data_loader(options))
                ghost = mock.Mock(side_effect=samplers[nn.Linear])
                with mock.patch.dict(samplers, {nn.Linear: ghost}):
                    train_step(training, options, inputs, targets, CPU)
                self.assertEqual(ghost.call_count, expected)

    def test_noise_is_that_of_the_clipping_norm(self) -> None:
        sigma, bound = 0.7, 3.0
        for method, clipping in accepted("mlp"):
            with self.subTest(method=method, clipping=clipping):
                more = {
                    "clipping": clipping,
                    "noise_multiplier": sigma,
                    "max_grad_norm": bound,
                    "mlp_dims": "200,100,50",
                }
                options = options_for("mlp", method, **more)
                model, inputs, targets = setup(options)
                training = prepare(options, model, data_loader(options))
                train_step(training, options, inputs, targets, CPU)
                noise = torch.cat([(p.grad * BATCH - p.summed_grad).flatten() for p in model.parameters()])
                # Adaptive clipping spends a part of the privacy on the count of unclipped samples: theorem 1 of
                # arXiv:1905.03871.
                shared = (2 * options.unclipped_num_std) ** -2 if clipping == "adaptive" else 0.0
                expected = (sigma**-2 - shared) ** -0.5 * bound
                self.assertAlmostEqual(noise.std().item(), expected, delta=0.03 * expected)
                self.assertAlmostEqual(noise.mean().item(), 0, delta=0.03 * expected)

    def test_adaptive_clipping_moves_the_bound(self) -> None:
        options = options_for("mlp", "dpsgd", clipping="adaptive", max_grad_norm=1e-3)
        model, inputs, targets = setup(options)
        training = prepare(options, model, data_loader(options))
        bounds = []
        for _ in range(10):
            train_step(training, options, inputs, targets, CPU)
            bounds.append(float(training.optimizer.max_grad_norm))
        self.assertGreater(bounds[-1], 1.5e-3, "all samples are clipped, half should not be")

    def test_norm_only_changes_no_gradient_and_knows_the_norms(self) -> None:
        for model in SIZES:
            with self.subTest(model=model):
                options = options_for(model, "norm_only")
                self.check_steps(options)
                network, inputs, targets = setup(options)
                reference = per_example_loop(network, inputs, targets, 1.0)
                training = prepare(options, network, data_loader(options))
                train_step(training, options, inputs, targets, CPU)
                norms = torch.stack([p._norm_sample for p in network.parameters()]).norm(dim=0).tolist()
                for actual, expected in zip(norms, reference.norms, strict=True):
                    self.assertAlmostEqual(actual, expected, delta=TOLERANCE * expected)

    def test_vanilla_is_the_mean(self) -> None:
        for model in SIZES:
            for physical in (6, 2, 1):
                with self.subTest(model=model, physical=physical):
                    self.check_steps(options_for(model, "vanilla", physical_batch_size=physical))

    def test_zero_grad_changes_no_gradient(self) -> None:
        bound = median_norm(options_for("mlp", "dpsgd"))
        for method in METHODS:
            for how in ("none", "keep"):
                for physical in (1,) if method == "loop" else (BATCH, 2):
                    with self.subTest(method=method, how=how, physical=physical):
                        more = {"max_grad_norm": bound, "zero_grad": how, "physical_batch_size": physical}
                        self.check_steps(options_for("mlp", method, **more))

    def test_checkpointing_changes_no_gradient(self) -> None:
        for method in ("vanilla", "loop"):
            with self.subTest(method=method):
                self.check_steps(options_for("transformer", method, checkpointing=True))

    def test_bf16_is_near(self) -> None:
        for model in SIZES:
            bound = median_norm(options_for(model, "dpsgd"))
            for method in METHODS:
                if method == "ew":
                    continue
                with self.subTest(model=model, method=method):
                    options = options_for(model, method, precision="bf16", max_grad_norm=bound)
                    network, inputs, targets = setup(options)
                    reference = per_example_loop(network, inputs, targets, bound)
                    expected = reference.clipped if method in DP_METHODS else reference.plain
                    training = prepare(options, network, data_loader(options))
                    train_step(training, options, inputs, targets, CPU)
                    delta = {n: p.grad * len(inputs) - expected[n] for n, p in network.named_parameters()}
                    self.assertLess(norm(delta), 0.05 * norm(expected))
                    self.assertGreater(norm(delta), 1e-4 * norm(expected), "the forward pass was not in bf16")


if __name__ == "__main__":
    unittest.main()
