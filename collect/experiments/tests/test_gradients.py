"""Every method's gradient is the per-example loop's, and so is what the optimizer makes of it."""

from __future__ import annotations

import statistics
import unittest

import torch
from dpsight_experiments.data import data_loader
from dpsight_experiments.loop import train_step
from dpsight_experiments.methods import Training, prepare
from dpsight_experiments.models import make_model
from dpsight_experiments.options import Options, resolve
from torch import Tensor, nn

from tests.reference import Reference, norm, per_example_loop

CPU = torch.device("cpu")
TOLERANCE = 1e-4
SIZES = {
    "transformer": {"vocab_size": 50, "hidden_dim": 16, "num_layers": 2, "num_heads": 2, "seq_len": 12},
    "mlp": {"mlp_dims": "20,16,8"},
}
DP_METHODS = ("dpsgd", "ghost")


def options_for(model: str, method: str, **more: object) -> Options:
    """Options of a small experiment without noise: six samples, SGD."""
    given = {"method": method, "model": model, "preset": "tiny", "batch_size": 6, "noise_multiplier": 0.0}
    given |= {"optimizer": "sgd", "learning_rate": 0.5, "seed": 3} | SIZES[model] | more
    return resolve({name: str(value) for name, value in given.items()})


def setup(options: Options) -> tuple[nn.Module, Tensor, Tensor]:
    """The model and the first batch, one of whose samples is unlike the others, so that the norms spread."""
    torch.manual_seed(options.seed)
    model = make_model(options, CPU)
    inputs, targets = next(iter(data_loader(options)))
    if options.model == "transformer":
        inputs[1], targets[1] = 7, 7  # one token over and over
    else:
        inputs[1] *= 5
    return model, inputs, targets


def median_norm(options: Options) -> float:
    """A clipping norm that clips some of the samples and leaves others alone."""
    model, inputs, targets = setup(options)
    norms = per_example_loop(model, inputs, targets, 1.0).norms
    return statistics.median(norms)


class GradientTest(unittest.TestCase):
    def assert_same(self, actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
        """The project's criterion: 1e-4 of the whole norm, over all parameters and for each one."""
        self.assertEqual(actual.keys(), expected.keys())
        whole = norm(expected)
        self.assertGreater(whole, 0)
        difference = {name: actual[name] - expected[name] for name in expected}
        self.assertLessEqual(norm(difference), TOLERANCE * whole)
        for name, delta in difference.items():
            self.assertLessEqual(delta.double().norm().item(), TOLERANCE * whole, name)

    def check_steps(self, options: Options, steps: int = 2) -> None:
        """Trains a few steps and compares each with the loop: sum, gradient and the weights' change."""
        model, inputs, targets = setup(options)
        training = prepare(options, model, data_loader(options))
        plain = make_model(options, CPU)
        for _ in range(steps):
            plain.load_state_dict(model.state_dict())
            reference = per_example_loop(plain, inputs, targets, options.max_grad_norm or 1.0)
            train_step(training, options, inputs, targets, CPU)
            self.check_one(options, training, plain, reference)

    def check_one(self, options: Options, training: Training, before: nn.Module, reference: Reference) -> None:
        expected = reference.clipped if training.private else reference.plain
        batch = options.batch_size
        parameters = dict(training.model.named_parameters())
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
                self.assertGreater(sum(n > 1.001 * bound for n in reference.norms), 0)
                self.assertGreater(sum(n < 0.999 * bound for n in reference.norms), 0)
                # What a method that clips nothing, or a batch as one, would give is far outside the tolerance.
                for wrong in (1.0, min(1.0, bound * len(inputs) / norm(reference.plain))):
                    delta = {k: reference.plain[k] * wrong - v for k, v in reference.clipped.items()}
                    self.assertGreater(norm(delta), 50 * TOLERANCE * norm(reference.clipped))

    def test_dp_methods_equal_the_loop(self) -> None:
        for model in SIZES:
            bound = median_norm(options_for(model, "dpsgd"))
            for method in DP_METHODS:
                for physical in (6, 3, 2, 1):
                    with self.subTest(model=model, method=method, physical=physical):
                        more = {"max_grad_norm": bound, "physical_batch_size": physical}
                        self.check_steps(options_for(model, method, **more))

    def test_vanilla_is_the_mean(self) -> None:
        for model in SIZES:
            for physical in (6, 2, 1):
                with self.subTest(model=model, physical=physical):
                    self.check_steps(options_for(model, "vanilla", physical_batch_size=physical))

    def test_zero_grad_changes_no_gradient(self) -> None:
        for method in ("vanilla", *DP_METHODS):
            bound = median_norm(options_for("mlp", "dpsgd"))
            for how in ("none", "keep"):
                for physical in (6, 2):
                    with self.subTest(method=method, how=how, physical=physical):
                        more = {"max_grad_norm": bound, "zero_grad": how, "physical_batch_size": physical}
                        self.check_steps(options_for("mlp", method, **more))

    def test_checkpointing_changes_no_gradient(self) -> None:
        self.check_steps(options_for("transformer", "vanilla", checkpointing=True))

    def test_bf16_is_near(self) -> None:
        for model in SIZES:
            bound = median_norm(options_for(model, "dpsgd"))
            for method in ("vanilla", *DP_METHODS):
                with self.subTest(model=model, method=method):
                    options = options_for(model, method, precision="bf16", max_grad_norm=bound)
                    network, inputs, targets = setup(options)
                    reference = per_example_loop(network, inputs, targets, bound)
                    expected = reference.plain if method == "vanilla" else reference.clipped
                    training = prepare(options, network, data_loader(options))
                    train_step(training, options, inputs, targets, CPU)
                    delta = {n: p.grad * len(inputs) - expected[n] for n, p in network.named_parameters()}
                    self.assertLess(norm(delta), 0.05 * norm(expected))
                    self.assertGreater(norm(delta), 1e-4 * norm(expected), "the forward pass was not in bf16")


if __name__ == "__main__":
    unittest.main()
