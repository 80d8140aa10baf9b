"""Who keeps a block: found by name, whatever keeps it, and kept no longer for that."""

from __future__ import annotations

import unittest

from dpsight_kinds import K
from harness import CASES, run
from test_phantom import Phantom

KIB = 1024
# By thousands of entries of four bytes.
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
    def test_planted(self) -> None:
        with run("holders", env=self.env) as r:
            self.assertEqual((r.code, r.complaints()), (0, []), r.err[-2000:])
            looks = r.journal.json(K.FRAME_HOLDERS)
            marks = {m.k: m for m in r.journal.marks if m.kind == K.HOLDERS}
            self.assertEqual([look["k"] for look in looks], list(marks))
            found = {size: (path, kind, view) for _, size, view, kind, path in looks[0]["blocks"]}
            fail = (CASES / "holders.py").read_text().splitlines().index("        fail()") + 1
            for n, path in PLANTED.items():
                self.assertEqual(found.get(n * 4 * KIB, ("", "", 0))[0], path.format(fail=fail), n)


if __name__ == "__main__":
    unittest.main()
