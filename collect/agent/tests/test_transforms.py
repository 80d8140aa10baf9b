"""Tests that scripts which use torch.func's transforms, traces or captures of their models end as without the
agent."""

from __future__ import annotations

import unittest

from dpsight_kinds import K
from harness import cases, parted, rest, run
from test_phantom import Phantom, Replay, lossless

_SIZES = {"0.weight": 64 * 128, "0.bias": 128, "2.weight": 128 * 10, "2.bias": 10}


class TestTransforms(Phantom):
    @parted
    def test_per_sample_gradients_by_vmap(self) -> None:
        """The agent finds the parameters and their per-sample gradients inside torch.func's wrappers."""
        for mode in cases(("func",), ("module",)):
            with self.subTest(mode):
                with (
                    run("transforms", mode, env=self.env) as r,
                    run("transforms", mode, agent=False, env=self.plain) as a,
                ):
                    self.assertEqual((r.code, r.complaints(), r.out), (0, [], a.out), r.err[-2000:])
                    j = r.journal
                self.assertEqual(lossless(j), [])
                samples = {(t.name, t.bytes) for t in j.tags if t.kind == K.GRAD_SAMPLE}
                self.assertEqual(samples, {(name, 16 * 4 * n) for name, n in _SIZES.items()})
                parameters = {(t.name, t.bytes) for t in j.tags if t.kind == K.PARAMETER}
                self.assertLessEqual({(name, 4 * n) for name, n in _SIZES.items()}, parameters)
                replay = Replay(j)
                for tag in sorted(t for t in j.tags if t.kind in (K.GRAD_SAMPLE, K.PARAMETER)):
                    self.assertEqual(replay.until(tag.k).get(tag.address), tag.bytes, tag)

    def test_a_trace_has_nothing_of_ours(self) -> None:
        """Traces, exports, captures and copies of models, and modes of the script, are the same with and without
        recording."""
        self.traced("full", "jit_trace", "symbolic_trace_whole", "make_fx", "export", "fake", "capture", "copies")

    @rest
    def test_no_trace_has_anything_of_ours(self) -> None:
        for mode in ("full", "bare"):
            with self.subTest(mode):
                self.traced(
                    mode,
                    *("jit_trace", "jit_trace_module", "jit_script", "symbolic_trace", "symbolic_trace_whole"),
                    *("make_fx", "export", "dynamo", "fake", "meta", "capture", "callables", "func", "copies"),
                    *("swapped", "modes", "checkpointed", "onnx_like"),
                )

    def traced(self, mode: str, *what: str) -> None:
        with run("traced", *what, agent=False, env=self.plain) as alone:
            lines = alone.out.splitlines()
            self.assertEqual([line.split()[0] for line in lines], [*what, "end"], alone.err[-2000:])
        with run("traced", *what, env={**self.env, "DPSIGHT_MODE": mode}) as r:
            self.assertEqual((r.code, r.complaints(), r.out.splitlines()), (0, [], lines), r.err[-2000:])
            if mode == "full":
                self.assertEqual(lossless(r.journal), [])

    @property
    def plain(self) -> dict[str, str]:
        """The variables for a phantom GPU without the agent."""
        return {k: v for k, v in self.env.items() if not k.startswith("DPSIGHT")}


if __name__ == "__main__":
    unittest.main()
