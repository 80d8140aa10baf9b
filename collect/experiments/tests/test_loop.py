"""Tests the training loop's calls of the agent, and its memory."""

from __future__ import annotations

import importlib
import io
import sys
import types
import unittest
import weakref
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from unittest import mock

import torch
from dpsight_experiments import _agent, cli
from dpsight_experiments.data import data_loader
from dpsight_experiments.loop import train_step
from dpsight_experiments.methods import prepare
from dpsight_experiments.models import make_model
from dpsight_experiments.options import resolve, table
from dpsight_experiments.transformer import positions
from torch import Tensor

METHODS = [m["id"] for m in table()["methods"]]
SMALL = ["--preset=tiny", "--seq-len=16", "--num-iter=2", "--warmup-iter=1", "--device=cpu"]


class AgentTest(unittest.TestCase):
    def run_recorded(self, *argv: str, planned: int = 4) -> list[object]:
        """Runs an experiment with a fake agent, and returns the calls of the agent."""
        calls: list[object] = []

        def phase(name: str) -> AbstractContextManager[None]:
            calls.append(name)
            return nullcontext()

        def plan(*, warmup: int, timed: int) -> int:
            calls.append((warmup, timed))
            return planned

        def step(samples: int | None = None, tokens: int | None = None) -> None:
            calls.append((samples, tokens))

        agent = types.SimpleNamespace(phase=phase, plan=plan, step=step)
        with (
            mock.patch.multiple("dpsight_experiments._agent", phase=phase, plan=plan, step=step),
            mock.patch("dpsight_experiments.methods.phase", agent.phase),
            redirect_stdout(io.StringIO()) as out,
        ):
            self.assertEqual(cli.main([*argv, *SMALL]), 0)
        self.assertRegex(out.getvalue(), rf"step {planned}/{planned} loss \d+\.\d{{4}}\n$")
        return calls

    def test_phases_plan_and_steps(self) -> None:
        setup = ["setup.data", "setup.model", "setup.optimizer"]
        for method in METHODS:
            with self.subTest(method):
                privacy = [] if method == "vanilla" else ["setup.privacy"]
                parts = [] if method == "loop" else ["--physical-batch-size=2"]
                calls = self.run_recorded(f"--method={method}", *parts)
                self.assertEqual(calls, [*setup, *privacy, (1, 2)] + 4 * [(4, 64)])

    def test_the_per_example_loop_marks_its_clipping(self) -> None:
        seen: list[str] = []
        with mock.patch(
            "dpsight_experiments.methods.per_example.phase", lambda name: seen.append(name) or nullcontext()
        ):
            self.run_recorded("--method=loop", "--batch-size=3", planned=2)
        self.assertEqual(seen, ["clip"] * 6)

    def test_an_mlp_has_no_tokens(self) -> None:
        calls = self.run_recorded("--method=vanilla", "--model=mlp", planned=1)
        self.assertEqual(calls[-1], (32, None))

    def test_shim_takes_the_agent_or_nothing(self) -> None:
        agent = types.ModuleType("dpsight")
        agent.config, agent.phase, agent.plan, agent.step = dict, nullcontext, max, print
        try:
            with mock.patch.dict(sys.modules, {"dpsight": agent}):
                self.assertIs(importlib.reload(_agent).step, print)
            # A folder named dpsight on the path is a package without the agent's functions.
            with mock.patch.dict(sys.modules, {"dpsight": types.ModuleType("dpsight")}):
                self.assertEqual(importlib.reload(_agent).plan(warmup=2, timed=3), 5)
        finally:
            importlib.reload(_agent)


class MemoryTest(unittest.TestCase):
    def test_logits_inputs_and_loss_are_gone_at_the_step(self) -> None:
        for model_name in ("transformer", "mlp"):
            for method in METHODS:
                with self.subTest(method=method, model=model_name):
                    self.check_gone(method, model_name)

    def check_gone(self, method: str, model_name: str) -> None:
        given = {"method": method, "model": model_name, "preset": "tiny"}
        options = resolve(given | ({"seq_len": "32"} if model_name == "transformer" else {}))
        model = make_model(options, torch.device("cpu"))
        loader = data_loader(options)
        training = prepare(options, model, loader)
        logits: list[weakref.ref[Tensor]] = []
        model.register_forward_hook(lambda module, args, output: logits.append(weakref.ref(output)))
        alive: list[bool] = []
        inner = getattr(training.optimizer, "original_optimizer", training.optimizer)
        inner.register_step_pre_hook(lambda *_: alive.append(logits[-1]() is not None))
        inputs, targets = next(iter(loader))
        for _ in range(2):
            train_step(training, options, inputs, targets, torch.device("cpu"))
        self.assertEqual(alive, [False, False])

    def test_positions_are_contiguous_and_per_sample(self) -> None:
        for batch in (1, 3):
            ids = positions(torch.zeros(batch, 5, dtype=torch.long))
            self.assertTrue(ids.is_contiguous())
            self.assertEqual(ids.tolist(), batch * [list(range(5))])

    def test_batches_come_from_the_host_and_repeat(self) -> None:
        options = resolve({"method": "vanilla", "preset": "tiny", "seed": "5"})
        first, again = list(data_loader(options)), list(data_loader(options))
        self.assertEqual([x.shape for x, _ in first], [(4, 512), (4, 512)])
        self.assertEqual(first[0][0].device.type, "cpu")
        self.assertTrue(
            all(torch.equal(a, b) for p, q in zip(first, again, strict=True) for a, b in zip(p, q, strict=True))
        )
        self.assertTrue(torch.equal(first[0][0][:, 1:], first[0][1][:, :-1]), "targets are the next tokens")


if __name__ == "__main__":
    unittest.main()
