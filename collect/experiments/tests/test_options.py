"""Tests the options without torch: the table, aliases, presets and refusals."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import signal
import subprocess
import sys
import unittest
from contextlib import redirect_stderr
from pathlib import Path
from unittest import mock

from dpsight_experiments import cli
from dpsight_experiments.options import Options, UsageError, parse, resolve, table

FOLDER = Path(__file__).resolve().parent.parent


class InterruptTest(unittest.TestCase):
    def end(self, raised: str) -> subprocess.CompletedProcess[str]:
        code = (
            "import runpy, dpsight_experiments.cli as cli\n"
            f"def main(argv): raise {raised}\n"
            "cli.main = main\n"
            "runpy.run_module('dpsight_experiments', run_name='__main__')"
        )
        return subprocess.run(
            [sys.executable, "-B", "-c", code], cwd=FOLDER, capture_output=True, text=True, check=False
        )

    def test_an_interrupt_ends_it_without_a_traceback(self) -> None:
        ended = self.end("KeyboardInterrupt")
        self.assertEqual((ended.returncode, ended.stderr), (-signal.SIGINT, ""))

    def test_an_error_has_its_traceback(self) -> None:
        self.assertIn("ValueError: lost", self.end("ValueError('lost')").stderr)


class OptionsTest(unittest.TestCase):
    def test_table_and_type_agree(self) -> None:
        self.assertEqual({o["name"] for o in table()["options"]}, {f.name for f in dataclasses.fields(Options)})

    def test_preset_is_under_what_is_given(self) -> None:
        options, device = parse(["--method", "DPGhostClippingTrainer", "--preset=seed", "--num-layers", "2"])
        self.assertEqual((options.method, options.num_layers, options.hidden_dim), ("ghost", 2, 2048))
        self.assertEqual((options.seq_len, options.batch_size, options.physical_batch_size), (16384, 1, 1))
        self.assertEqual((options.max_grad_norm, options.mlp_dims, device), (1.0, None, "auto"))

    def test_names_that_stand_for_a_method_with_parameters(self) -> None:
        self.assertEqual(
            resolve({"method": "functorch"}), resolve({"method": "dpsgd", "grad_sample_mode": "functorch"})
        )
        self.assertEqual(resolve({"method": "naive", "batch_size": "8"}).physical_batch_size, 1)
        self.assertIsNone(resolve({"method": "ghost", "grad_sample_mode": "ew"}).grad_sample_mode)

    def test_options_of_others_are_dropped(self) -> None:
        options = resolve({"method": "hooks", "model": "mlp", "seq_len": "128"})
        self.assertEqual((options.method, options.seq_len, options.mlp_widths), ("dpsgd", None, [5120, 2560, 1280]))
        self.assertIsNone(resolve({"method": "vanilla", "clipping": "per_layer"}).clipping)
        self.assertIsNone(resolve({"method": "norm_only", "noise_multiplier": "2"}).noise_multiplier)
        self.assertIsNone(resolve({"method": "dpsgd", "max_clipbound": "2"}).max_clipbound)
        self.assertIsNone(resolve({"method": "vanilla", "clipping": "adaptive"}).max_clipbound)

    def test_a_bool_needs_no_value(self) -> None:
        self.assertTrue(parse(["--method=vanilla", "--checkpointing"])[0].checkpointing)
        self.assertFalse(parse(["--method=vanilla", "--checkpointing", "false"])[0].checkpointing)

    def test_refusals(self) -> None:
        for given, sentence in {
            "--method loop --physical-batch-size 4": "method loop goes with physical_batch_size 1, not 4",
            "--method ew --grad-sample-mode hooks": "method ew goes with grad_sample_mode ew, not hooks",
            "--method ew --precision bf16": "precision bf16 is not supported with grad_sample_mode ew: ",
            "--method ghots": 'unknown method "ghots"; did you mean ghost?',
            "--method=ghost --preset smal": 'unknown preset "smal"; did you mean small?',
            "--method=ghost --model=mlp --preset seed": "preset seed has no sizes for model mlp; known: tiny, small",
            "--method=dpsgd --checkpointing": "checkpointing is not supported with method dpsgd: ",
            "--method=norm_only --checkpointing": "checkpointing is not supported with method norm_only: ",
            "--method=ghost --clipping per_layer": "clipping per_layer is not supported with method ghost: ",
            "--method=bk --clipping adaptive": "clipping adaptive is not supported with method bk: ",
            "--method=dpsgd --clipping adaptive --poisson": "clipping adaptive is not supported with poisson: ",
            "--method=dpsgd --clipping adaptive --precision bf16": "clipping adaptive is not supported with precision",
            "--method=dpsgd --clipping adaptive --noise-multiplier 2.5": "noise_multiplier 2.5 must be less than ",
            "--method=dpsgd --clipping adaptive --min-clipbound 1000": "min_clipbound 1000 must be less than ",
            "--method=dpsgd --target-unclipped-quantile 1.5": "target_unclipped_quantile must be at most 1, not 1.5",
            "--method=ghost --hidden-dim 100": "num_heads must be a divisor of hidden_dim 100, not 8",
            "--method=ghost --physical-batch-size 8": "physical_batch_size must be a divisor of batch_size 4, not 8",
            "--method=ghost --max-grad-norm 0": "max_grad_norm must be more than 0, not 0",
            "--method=ghost --learning-rate nan": 'learning_rate must be a number, not "nan"',
            "--method=ghost --num-iter 0": "num_iter must be at least 1, not 0",
            "--method=ghost --num-iter 1_0": 'num_iter must be a whole number, not "1_0"',
            "--method=ghost --model=mlp --mlp-dims 8": 'mlp_dims must look like 5120,2560,1280, not "8"',
            "--preset tiny": "no method: give --method vanilla, loop, dpsgd, ",
        }.items():
            with self.subTest(given), self.assertRaises(UsageError) as raised:
                parse(given.split())
            self.assertTrue(str(raised.exception).startswith(sentence), str(raised.exception))


class CommandLineTest(unittest.TestCase):
    def refused(self, *argv: str) -> str:
        """Returns main's message on stderr, and checks that it is one line and that the exit code is 2."""
        stderr = io.StringIO()
        with redirect_stderr(stderr):
            self.assertEqual(cli.main(list(argv)), 2)
        self.assertEqual(stderr.getvalue().count("\n"), 1, stderr.getvalue())
        return stderr.getvalue().strip()

    def test_missing_packages_are_named(self) -> None:
        find_spec = importlib.util.find_spec
        for package, sentence in {
            "torch": "error: torch is not installed: pip install torch",
            "opacus": "error: opacus is not installed: pip install opacus==1.6.0",
        }.items():
            found = lambda name, missing=package: None if name == missing else find_spec(name)  # noqa: E731
            with mock.patch.object(cli, "find_spec", found):
                self.assertEqual(self.refused("--method=ghost", "--preset=tiny"), sentence)

    def test_an_old_opacus_is_named(self) -> None:
        with mock.patch.object(cli, "version", lambda name: "1.5.4"):
            said = self.refused("--method=ghost", "--preset=tiny")
        self.assertEqual(said, "error: opacus 1.5.4 is too old: pip install opacus==1.6.0")

    def test_no_cuda_is_said(self) -> None:
        with mock.patch("torch.cuda.is_available", lambda: False):
            said = self.refused("--method=vanilla", "--preset=tiny", "--device=cuda")
        self.assertRegex(said, r"^error: no CUDA device: torch \S+ finds none; --device cpu trains without one$")

    def test_a_wrong_option_is_refused_before_torch_is_imported(self) -> None:
        code = (
            "import sys; sys.modules['torch'] = None; from dpsight_experiments.cli import main; sys.exit(main(['-x']))"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "error: unrecognized arguments: -x\n"))


if __name__ == "__main__":
    unittest.main()
