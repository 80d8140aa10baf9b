"""Runs the case scripts under the agent."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from decode import Journal, journals  # noqa: E402

PART = os.environ.get("DPSIGHT_TEST_PART", "")
CASES = HERE / "cases"
PYTHON_PATH = HERE.parent / "python"


class Result:
    """The output, the exit code and the journals of a case script."""

    def __init__(self, done: subprocess.CompletedProcess[str], found: list[Journal], folder: Path) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.journals = found
        self.folder = folder

    @property
    def journal(self) -> Journal:
        assert len(self.journals) == 1, (len(self.journals), self.err[-2000:])
        return self.journals[0]

    def complaints(self) -> list[str]:
        """Returns the agent's messages on stderr."""
        return [line for line in self.err.splitlines() if line.startswith("dpsight:")]


@contextlib.contextmanager
def run(case: str, *args: str, env: dict[str, str] | None = None, agent: bool = True) -> Iterator[Result]:
    """Runs the script tests/cases/CASE.py in a new process, with or without the agent."""
    with tempfile.TemporaryDirectory() as folder:
        spool = Path(folder) / "spool"
        full = {k: v for k, v in os.environ.items() if not k.startswith("DPSIGHT_")}
        full.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", TORCHINDUCTOR_CACHE_DIR=folder)
        if agent:
            full.update(DPSIGHT_SPOOL=str(spool), DPSIGHT_ALLOW_CPU="1", PYTHONPATH=str(PYTHON_PATH))
            full["DPSIGHT_LIKE_A_GPU"] = "1"  # without looks between lines, so that tests can count tags
        full.update(env or {})
        command = [sys.executable, str(CASES / f"{case}.py"), *args]
        done = subprocess.run(command, env=full, capture_output=True, text=True, timeout=900, check=False)
        yield Result(done, journals(spool) if spool.exists() else [], spool)


_T = TypeVar("_T")


def rest(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test that `make test` leaves out, since it is a further case of another test and starts torch."""
    test.rest = True  # type: ignore[attr-defined]
    return test


def parted(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test that iterates over the result of cases(), so that make test-rest also runs it, with further
    cases."""
    test.parted = True  # type: ignore[attr-defined]
    return test


def cases(now: Iterable[_T], rest: Iterable[_T]) -> list[_T]:
    """Returns the cases of the selected part: the cases of `make test`, the cases that it leaves out, or both."""
    return [*(now if PART != "rest" else ()), *(rest if PART else ())]


class Parted(unittest.TestCase):
    """Skips tests that are not in the selected part: "rest" is what `make test` leaves out, "all" is both parts."""

    def setUp(self) -> None:
        test = getattr(self, self._testMethodName)
        left_out = hasattr(test, "rest")
        if left_out and not PART:
            self.skipTest("LEFT OUT: make test-rest runs it")
        if PART == "rest" and not left_out and not hasattr(test, "parted"):
            self.skipTest("make test runs it")


def phantom() -> dict[str, str]:
    """Returns the environment variables that give a process a phantom GPU."""
    text = os.environ.get("DPSIGHT_TEST_PHANTOM_ENV")
    if not text:
        raise unittest.SkipTest(
            "DPSIGHT_TEST_PHANTOM_ENV is not set: a JSON object of variables that give a phantom GPU"
        )
    return {**json.loads(text), "DPSIGHT_SOURCE": "predicted"}
