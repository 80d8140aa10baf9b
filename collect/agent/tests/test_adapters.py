"""Tests what the agent tags for the libraries in adapters.py except Opacus, which test_extensions.py and others test.
cases/libraries has small libraries that are built like the real ones."""

from __future__ import annotations

import sys
import unittest
from collections import Counter
from pathlib import Path

from decode import Journal
from dpsight_kinds import K
from harness import rest, run
from test_phantom import Phantom, Replay

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from dpsight import adapters  # noqa: E402

sys.path.pop(0)

STEPS, BATCH = 3, 16
PARAMETERS = {"0.weight": 64 * 256 * 4, "0.bias": 256 * 4, "2.weight": 256 * 5 * 4, "2.bias": 5 * 4}
BIASES = {name: size for name, size in PARAMETERS.items() if name.endswith("bias")}


class TestLibraries(Phantom):
    def kept(self, mode: str) -> Journal:
        """Returns the journal of a run whose last step and evaluation are bare. Checks that each tag names a live
        block."""
        with run("keeping", "cuda", mode, env={**self.env, "DPSIGHT_WARMUP": "2"}) as r:
            j = self.checked(r)
        self.assertEqual(j.count(K.STEP_END), STEPS)
        replay = Replay(j)
        for tag in sorted(t for t in j.tags if not t.ends):
            self.assertGreaterEqual(replay.until(tag.k).get(tag.address, 0), tag.bytes, tag)
        privacy = j.json(K.FRAME_PRIVACY)[-1]
        self.assertEqual((privacy["noise_multiplier"], privacy["max_grad_norm"]), (1.5, 0.5))
        return j

    def layers(self, j: Journal, kind: int) -> Counter[tuple[str, int]]:
        """Returns how often each layer was recorded as keeping a tensor of a size."""
        return Counter((j.modules[t.module]["path"], t.bytes) for t in j.tags if t.kind == kind and not t.ends)

    def parameters(self, j: Journal, kind: int, ends: bool = False) -> dict[str, int]:
        return {t.name: t.bytes for t in j.tags if t.kind == kind and t.ends == ends}

    def phases(self, j: Journal) -> dict[str, int]:
        found = Counter(j.names[m.a] for m in j.marks if m.kind == K.PHASE_BEGIN)
        return {name: found[name] for name in ("clip", "accumulate", "noise")}

    def test_book_keeping(self) -> None:
        j = self.kept("fast")
        evaluated = {("0", 32 * 64 * 4): 2, ("2", 32 * 256 * 4): 2}
        kept = {("0", BATCH * 64 * 4): STEPS, ("2", BATCH * 256 * 4): STEPS}
        self.assertEqual(self.layers(j, K.HOOK_ACTIVATION), {**kept, **evaluated})
        self.assertIn(("1", 4096 * 4), self.layers(j, K.HELD))  # the script's own tensor
        self.assertEqual(
            self.layers(j, K.STORED_BACKPROP), {("0", BATCH * 256 * 4): STEPS, ("2", BATCH * 5 * 4): STEPS}
        )
        samples = {name: BATCH * size for name, size in PARAMETERS.items()}
        self.assertEqual(self.parameters(j, K.GRAD_SAMPLE), samples)
        self.assertEqual(self.parameters(j, K.NORM_SAMPLE), dict.fromkeys(PARAMETERS, BATCH * 4))
        # The summed gradient becomes the parameter's gradient, which ends its tag.
        self.assertEqual(self.parameters(j, K.SUMMED_GRADIENT), PARAMETERS)
        self.assertEqual(self.parameters(j, K.SUMMED_GRADIENT, ends=True), PARAMETERS)
        self.assertEqual(self.phases(j), {"clip": 0, "accumulate": STEPS, "noise": 0})
        self.assertEqual(j.count(K.SAMPLER_BEGIN), 3 * STEPS)  # once for each of two layers, and once to clip
        self.assertIn("setup.privacy", {j.names[m.a] for m in j.marks if m.kind == K.PHASE_BEGIN})

    @rest
    def test_biases_alone(self) -> None:
        """If only biases are trained, fastDP keeps output gradients until the next step's replace them. The output
        gradients have a tag between steps, too."""
        j = self.kept("biases")
        self.assertEqual(self.layers(j, K.HOOK_ACTIVATION), {})
        stored = self.layers(j, K.STORED_BACKPROP)
        self.assertEqual(set(stored), {("0", BATCH * 256 * 4), ("2", BATCH * 5 * 4)})
        self.assertGreater(min(stored.values()), STEPS)
        self.assertEqual(self.parameters(j, K.SUMMED_GRADIENT), BIASES)

    @rest
    def test_engine_with_samples(self) -> None:
        j = self.kept("samples")
        self.assertEqual(
            self.layers(j, K.HOOK_ACTIVATION), {("0", BATCH * 64 * 4): STEPS, ("2", BATCH * 256 * 4): STEPS}
        )
        self.assertEqual(self.parameters(j, K.GRAD_SAMPLE), {name: BATCH * size for name, size in PARAMETERS.items()})
        self.assertEqual(self.parameters(j, K.SUMMED_GRADIENT), PARAMETERS)
        self.assertEqual(self.phases(j), {"clip": STEPS, "accumulate": 0, "noise": STEPS})

    @rest
    def test_engine_with_norms(self) -> None:
        j = self.kept("ghost")
        self.assertEqual(self.parameters(j, K.NORM_SAMPLE), dict.fromkeys(PARAMETERS, BATCH * 4))
        self.assertEqual(self.parameters(j, K.GRAD_SAMPLE), {})
        self.assertEqual(self.parameters(j, K.SUMMED_GRADIENT), PARAMETERS)
        self.assertEqual(self.phases(j), {"clip": 0, "accumulate": STEPS, "noise": STEPS})
        self.assertEqual(j.count(K.DP_BACKWARD_BEGIN), STEPS)


class TestTable(unittest.TestCase):
    def test_modules_have_one_adapter(self) -> None:
        modules = [module for adapter in adapters.ADAPTERS for module in adapter.modules]
        self.assertEqual(len(modules), len(set(modules)))

    def test_attributes_mean_one_thing(self) -> None:
        for attributes in ("layers", "parameters"):
            said: dict[str, set[int]] = {}
            for adapter in adapters.ADAPTERS:
                for name, kind in getattr(adapter, attributes).items():
                    said.setdefault(name, set()).add(kind)
            self.assertEqual({name: kinds for name, kinds in said.items() if len(kinds) > 1}, {})

    def test_phases_have_parameters(self) -> None:
        """An adapter's class lists its parameters exactly if one of its methods is a phase."""
        phases = {adapters.Does.CLIPS, adapters.Does.ACCUMULATES, adapters.Does.ADDS_NOISE}
        for adapter in adapters.ADAPTERS:
            self.assertFalse(phases & set(adapter.functions.values()), adapter.name)
            for classes in adapter.classes:
                self.assertEqual(bool(phases & set(classes.methods.values())), bool(classes.parameters), classes.names)


if __name__ == "__main__":
    unittest.main()
