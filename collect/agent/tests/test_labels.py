"""Tests that scripts which use names and paths that are not valid text, or close file descriptors, end as without the
agent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from decode import journals
from dpsight_kinds import K
from harness import CASES, PYTHON_PATH, cases, parted, rest, run
from test_phantom import Phantom, lossless

_ESCAPED = "a\\udcff"


class TestLabels(Phantom):
    @parted
    def test_what_is_no_text_is_escaped(self) -> None:
        for kind in cases(("tag", "raise"), ("mark", "phase", "config", "metric")):
            with self.subTest(kind), run("labels", kind, env=self.env) as r:
                self.assertEqual((r.code, r.out), (int(kind == "raise"), "end []\n"), r.err[-2000:])
                self.assertEqual(r.complaints(), [])
                j = r.journal
                self.assertEqual((lossless(j), j.count(K.STEP_END), j.count(K.EXIT)), ([], 6, 1))
                if kind == "config":
                    self.assertEqual(j.json(K.FRAME_CONFIG), [{"a": _ESCAPED, _ESCAPED: 1}])
                elif kind == "raise":
                    self.assertEqual(j.json(K.FRAME_EXCEPTION)[0]["message"], _ESCAPED)
                else:
                    self.assertIn(_ESCAPED, j.names.values())

    @rest
    def test_descriptors_that_a_script_closes(self) -> None:
        """If a script closes the journal's file descriptors, the agent opens its files again. Files of the script that
        get the same numbers contain only what the script wrote."""
        with tempfile.TemporaryDirectory() as folder, run("labels", "descriptors", folder, env=self.env) as r:
            self.assertEqual((r.code, r.out, r.complaints()), (0, f"end {[4] * 12}\n", []), r.err[-2000:])
            j = r.journal
            self.assertEqual((lossless(j), j.count(K.STEP_END), len(j.json(K.FRAME_END))), ([], 6, 1))

    def test_a_scripts_path_that_is_no_text(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(os.fsencode(folder), b"train\xff.py")
            shutil.copy(CASES / "labels.py", script)
            spool = Path(folder) / "spool"
            env = {k: v for k, v in os.environ.items() if not k.startswith("DPSIGHT_")}
            env.update(self.env, DPSIGHT_SPOOL=str(spool), PYTHONPATH=str(PYTHON_PATH), PYTHONDONTWRITEBYTECODE="1")
            env.update(DPSIGHT_STACKS="python")
            done = subprocess.run(
                [sys.executable, script, "none"], env=env, capture_output=True, timeout=300, check=False
            )
            self.assertEqual((done.returncode, done.stdout), (0, b"end []\n"), done.stderr[-2000:])
            said = [line for line in done.stderr.splitlines() if line.startswith(b"dpsight:")]
            # torch cannot record stacks if a file's path is not valid text.
            self.assertEqual(
                [line.split(b":")[1] for line in said], [b" recording stacks failed, the agent continues without it"]
            )
            (journal,) = journals(spool)
            self.assertEqual((lossless(journal), journal.count(K.STEP_END)), ([], 6))


if __name__ == "__main__":
    unittest.main()
