"""Tests that the agent finds the holders of blocks by name, and that the search keeps no block alive."""

from __future__ import annotations

import unittest
from typing import Any

from dpsight_kinds import K
from harness import CASES, rest, run
from test_phantom import Phantom

KIB = 1024
# By the size of a block, in units of 1,024 entries of four bytes.
PLANTED = {
    10: "global kept[0]",
    11: "global kept[1]",
    12: "global by_name['first']['inner']",
    13: "local function of main() → closure enclosed of closure.<lambda>()",
    14: "global default → default argument argument[0] of default()",
    15: "local generated of main() (generator generator()) → local inside",
    16: "local caught of main() (exception caught at holders.py:{fail}) → frame of fail() → local failing",
    17: "local reference of main() (weak reference) → callback → closure enclosed of called_back.<lambda>()",
    18: "cycle of Node.tensor",
    19: "Net.fc.memory[0]",
    20: "local aside of work() in thread worker",
    21: "local local of main()",
    22: "local running of main() → grad_fn → saved tensor of SavesBackward",
    23: "local view of main()",
    24: "class Net.table['shared']",
}


class TestHolders(Phantom):
    def looked(self, *arguments: str, script: str = "holders") -> tuple[list[Any], dict[int, tuple[str, str, int]]]:
        """Returns the searches for holders in a run, and the last record of each block by its size as in PLANTED: the
        kind of holder, its path, and the size of a view. Checks that the run's output, with its memory, is the same
        without the agent."""
        every = {**self.env, "DPSIGHT_LIKE_A_GPU": ""}
        with run(script, *arguments, env=every) as r, run(script, *arguments, env=every, agent=False) as without:
            self.assertEqual((r.code, r.out, r.err), (0, without.out, without.err))
            looks = r.journal.json(K.FRAME_HOLDERS)
            self.assertEqual([look["k"] for look in looks], [m.k for m in r.journal.marks if m.kind == K.HOLDERS])
            blocks = [block for look in looks for block in look["blocks"]]
            return looks, {size // (4 * KIB): (kind, path, view) for _, size, view, kind, path in blocks}

    def test_planted(self) -> None:
        """The agent finds each kind of holder, and its search keeps nothing alive."""
        looks, found = self.looked()
        fail = (CASES / "holders.py").read_text().splitlines().index("        fail()") + 1
        self.assertEqual({n: found[n][1] for n in PLANTED}, {n: p.format(fail=fail) for n, p in PLANTED.items()})
        kinds = {n: found[n][0] for n in (10, 16, 18, 22, 25)}
        self.assertEqual(kinds, {10: "python", 16: "exception", 18: "cycle", 22: "graph", 25: "native"})
        self.assertEqual([found[n][2] for n in (10, 23)], [0, 2048])
        self.assertTrue(all(look["complete"] for look in looks))
        self.assertEqual([look["moment"] for look in looks if look["moment"] != "survey"], ["step", "exit"])

    @rest
    def test_holders_change(self) -> None:
        """The last record of a block names its present holder, even if the search before found another holder."""
        looks, found = self.looked(script="holders_change")
        self.assertIn("local out[0] of main()", [path for look in looks for _, _, _, _, path in look["blocks"]])
        self.assertEqual(found[30][:2], ("python", "global kept[1]"))
        self.assertEqual(found[31][:2], ("native", ""))
        self.assertEqual(found[32][:2], ("python", "global kept[0]"))
        self.assertEqual(found[33][:2], ("python", "global cache['of the script']"))

    @rest
    def test_a_request_that_fails(self) -> None:
        looks, _ = self.looked("oom")
        self.assertEqual([x["moment"] for x in looks if x["moment"] != "survey"], ["step", "oom", "exit"])
        paths = {path for look in looks if look["moment"] == "oom" for _, _, _, _, path in look["blocks"]}
        self.assertIn("local failing[0] of main()", paths)
        self.assertNotIn("global kept[0]", paths, "an earlier look has said it")


if __name__ == "__main__":
    unittest.main()
