"""Tests which files the journal lists as the script's code."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path
from typing import Any

from decode import journals
from dpsight_kinds import K
from harness import PYTHON_PATH, Parted, rest

TRAIN = """
import os, sys
import early, pack.part, installed, named
import torch
with open(os.path.join(here := os.path.dirname(os.path.abspath(__file__)), "early.py"), "a") as file:
    file.write("EDITED = True\\n")  # what was imported is the file as it was
with open(os.path.join(here, "written.py"), "w") as file:
    file.write("NUMBER = 1\\n")
import written
sys.path.append(os.path.join(here, "torchinductor_me"))
import generated
os.chdir("/")
x = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(x.parameters(), lr=0.1)
x(torch.ones(1, 4)).sum().backward()
optimizer.step()
import late
optimizer.step()
"""
FILES = {
    "src/train.py": TRAIN,
    "src/early.py": "",
    "src/late.py": "LATE = True\n",
    "src/pack/__init__.py": "",
    "src/pack/part.py": "import os\n",
    "src/unused.py": "",
    "src/torchinductor_me/generated.py": "",
    "venv/lib/python3/site-packages/installed.py": "",
}


class TestScriptCode(Parted):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            os.utime(path, (before := time.time() - 60, before))

    def code(self, *argv: str, path: tuple[str, ...] = (), cwd: str = ".") -> dict[tuple[str, str], Any]:
        """Runs a script, and returns the code files that the journal has, by module and file."""
        spool = self.folder / "spool"
        env = {k: v for k, v in os.environ.items() if not k.startswith("DPSIGHT_")}
        search = os.pathsep.join([str(PYTHON_PATH), *(str(self.folder / p) for p in path)])
        env.update(DPSIGHT_SPOOL=str(spool), DPSIGHT_ALLOW_CPU="1", PYTHONPATH=search, PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run(
            [sys.executable, *argv],
            env={**env, "OMP_NUM_THREADS": "1"},
            cwd=self.folder / cwd,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (journal,) = journals(spool)
        return {(f["module"], f["file"]): f for f in journal.json(K.FRAME_CODE)[-1]["files"]}

    def test_a_script_and_what_it_imports(self) -> None:
        self.write({f"repo/{name}": text for name, text in FILES.items()})
        self.write({"elsewhere/named.py": "NAMED = True\n"})
        (self.folder / "repo/.git").mkdir()
        found = self.code("train.py", path=("elsewhere", "repo/venv/lib/python3/site-packages"), cwd="repo/src")
        want = {
            ("__main__", "src/train.py"): TRAIN,
            ("early", "src/early.py"): "",
            ("late", "src/late.py"): "LATE = True\n",
            ("named", "named.py"): "NAMED = True\n",
            ("pack", "src/pack/__init__.py"): "",
            ("pack.part", "src/pack/part.py"): "import os\n",
            ("written", "src/written.py"): None,  # this file was written after the process began
        }
        hashes = {k: None if text is None else hashlib.sha256(text.encode()).hexdigest() for k, text in want.items()}
        self.assertEqual({k: f["sha256"] for k, f in found.items()}, hashes)
        self.assertEqual([k[0] for k, f in found.items() if f["changed"]], ["written"])

    @rest
    def test_a_module_and_a_text(self) -> None:
        training = textwrap.dedent("""
            import torch
            torch.optim.SGD(torch.nn.Linear(4, 4).parameters(), lr=0.1).step()
            torch.nn.Linear(4, 4)(torch.ones(1, 4))
        """)
        self.write({"trainer/__init__.py": "", "trainer/__main__.py": training})
        found = self.code("-m", "trainer")
        self.assertEqual(set(found), {("__main__", "trainer/__main__.py"), ("trainer", "trainer/__init__.py")})
        digest = hashlib.sha256(training.encode()).hexdigest()
        self.assertEqual(found["__main__", "trainer/__main__.py"]["sha256"], digest)
        for file in (self.folder / "spool").iterdir():
            file.unlink()
        self.assertEqual({k: f["sha256"] for k, f in self.code("-c", training).items()}, {("__main__", "-c"): digest})

    @rest
    def test_a_name_is_looked_for_once(self) -> None:
        """Each recorded line needs its file's name, so the agent remembers the name."""
        training = textwrap.dedent("""
            import torch
            from dpsight import script_code as module
            torch.optim.SGD(torch.nn.Linear(4, 4).parameters(), lr=0.1).step()
            looked, roots = [], module.ScriptCode._roots
            module.ScriptCode._roots = lambda *args: looked.append(args) or roots(*args)
            names = {module.script_code.name_of(__file__) for _ in range(3)}
            assert (names, len(looked)) == ({"train.py"}, 1), (names, looked)
        """)
        self.write({"train.py": training})
        self.code("train.py")


if __name__ == "__main__":
    unittest.main()
