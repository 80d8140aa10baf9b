"""Tests that the agent treats subclasses of Opacus's classes like Opacus's own classes."""

from __future__ import annotations

import unittest
from collections import Counter

from dpsight_kinds import K
from harness import run
from test_phantom import Phantom, Replay


class TestSubclasses(Phantom):
    def test_hooks_and_optimizer(self) -> None:
        with run("extended", "cuda", env={**self.env, "DPSIGHT_WARMUP": "9"}) as r:
            j = self.checked(r)
        steps, layers = 3, {m["path"]: m for m in j.modules.values() if m["class"] == "Linear"}
        numbers = {m["id"]: path for path, m in layers.items()}
        # The journal has norm_by, which the hooks set, when it is first known and when it changes.
        self.assertEqual({path: m["norm_by"] for path, m in layers.items()}, {"0": "later", "2": "later"})
        words = [m["norm_by"] for f in j.json(K.FRAME_MODULES) for m in f["modules"] if m["path"] == "2"]
        self.assertEqual(words, [None, "first", "later"])

        # If an override calls the method that it overrides, both together make one phase and one tag.
        begun = Counter(j.names[m.a] for m in j.marks if m.kind == K.PHASE_BEGIN)
        self.assertEqual((begun["accumulate"], begun["noise"]), (steps, steps))
        self.assertEqual(j.count(K.SAMPLER_BEGIN), 2 * steps)
        held = [t for t in j.tags if t.kind == K.HOOK_ACTIVATION]
        # Each activation is tagged when the hook keeps it, and again between two steps, since the script drops it only
        # after the step.
        twice = 2 * steps
        self.assertEqual(Counter((numbers[t.module], t.ends) for t in held), {("0", False): twice, ("2", False): twice})
        stored = [t for t in j.tags if t.kind == K.STORED_BACKPROP]
        self.assertEqual(Counter(numbers[t.module] for t in stored), {"0": twice, "2": twice})
        self.assertEqual({(numbers[t.module], t.bytes) for t in stored}, {("0", 16 * 256 * 4), ("2", 16 * 5 * 4)})

        replay = Replay(j)
        for tag in sorted(stored):
            self.assertEqual(replay.until(tag.k).get(tag.address), tag.bytes)


if __name__ == "__main__":
    unittest.main()
