"""Tests the private names of torch that the agent uses, with the interpreter's torch: each exists, a probe notices a
missing one, and the agent works without it.
"""

from __future__ import annotations

import contextlib
import json
import operator
import subprocess
import sys
import unittest
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from harness import PYTHON_PATH, Parted, phantom, rest, run

# isort: split
from dpsight import torch_compat, torch_probes
from dpsight.torch_compat import private

# The features that each release of torch lacks.
ABSENT: dict[str, set[str]] = {
    "2.11": set(),
    "2.15": set(),
}
RELEASE = ".".join(torch.__version__.split(".")[:2])

# The constants in torch_compat that are names in torch.
NAMES = (
    "CALL",
    "CHILDREN",
    "ENGINE",
    "EXPANDED_WEIGHTS",
    "FSDP2",
    "FSDP2_GROUPS",
    "GATHER",
    "INDUCTOR",
    "INIT_STATE",
    "NAMED_OPTIMIZER",
    "OPS",
    "OPTIMIZER_HOOKS",
    "PARAMETERS",
    "RECOMPUTATION",
    "RECORD_HISTORY",
    "SCATTER",
    "SHARD",
    "SNAPSHOT",
    "STATE_DICT",
)


def failing() -> set[str]:
    """Returns the features whose probes fail in this process."""
    return {r["name"] for r in torch_probes.results(torch) if not r["ok"]}


@contextlib.contextmanager
def without(path: str) -> Iterator[None]:
    """Removes a name from torch within the context."""
    *way, name = path.split(".")
    owner = operator.attrgetter(".".join(way))(torch) if way else torch
    with mock.patch.object(owner, name, create=True):
        delattr(owner, name)
        yield


class TestProbes(unittest.TestCase):
    def test_this_release_has_what_is_known_of_it(self) -> None:
        self.assertIn(RELEASE, ABSENT, 'see what "dpsight doctor" says of this release, and add it to ABSENT')
        command = [sys.executable, "-W", "ignore", "-m", "dpsight.torch_probes"]
        done = subprocess.run(command, cwd=PYTHON_PATH, capture_output=True, text=True, timeout=300, check=True)
        results = json.loads(done.stdout)
        self.assertEqual({r["name"] for r in results if not r["ok"]}, ABSENT[RELEASE], results)

    def test_the_table_says_all_of_each(self) -> None:
        names = [f.name for f in torch_probes.FEATURES]
        self.assertEqual(len(set(names)), len(names))
        for feature in torch_probes.FEATURES:
            self.assertTrue(feature.gives and feature.without, feature)
            self.assertEqual(feature.needed, feature.without == "no recording", feature)
            self.assertLessEqual(len(f"{feature.name:20} missing  {feature.gives}"), 80)

    def test_each_function_has_a_probe(self) -> None:
        for name, path in torch_compat._FUNCTIONS.items():
            if path == "_C._CudaEventBase.record":
                continue  # a name of a C++ type cannot be removed
            with self.subTest(path):
                with without(path):
                    self.assertGreater(failing(), ABSENT[RELEASE])
                    needed = name != "current_node"
                    self.assertEqual(private.look_up(torch), [path] if needed else [])
                    with self.assertRaisesRegex(AttributeError, path) if needed else contextlib.nullcontext():
                        private.bind(torch)
                private.bind(torch)

    def test_each_name_has_a_probe(self) -> None:
        for name in NAMES:
            with self.subTest(name), mock.patch.object(torch_compat, name, "_torch_has_no_such_name"):
                self.assertGreater(failing(), ABSENT[RELEASE])

    def test_a_torch_without_cuda_needs_none_of_it(self) -> None:
        with mock.patch.object(torch.version, "cuda", None), without("_C._cuda_memoryStats"):
            self.assertEqual(private.look_up(torch), [])
        private.bind(torch)


class TestForgottenHooks(Parted):
    """Tests forgets_gradient_hooks, which calls a C++ function of torch by its mangled name."""

    def setUp(self) -> None:
        super().setUp()
        for cached in (torch_compat._set_hooks, torch_compat.forgets_gradient_hooks):
            cached.cache_clear()
            self.addCleanup(cached.cache_clear)

    def test_it_works_here(self) -> None:
        self.assertTrue(torch_compat.forgets_gradient_hooks())

    def test_a_library_without_the_function(self) -> None:
        with mock.patch.object(torch_compat, "_SET_HOOKS", "_ZN5torch8autograd4impl23no_such_function"):
            self.assertFalse(torch_compat.forgets_gradient_hooks())

    def test_a_function_that_does_something_else(self) -> None:
        with mock.patch.object(torch_compat, "_set_hooks", lambda: lambda _tensor, _hooks: None):
            self.assertFalse(torch_compat.forgets_gradient_hooks())

    @rest
    def test_bare_steps_with_and_without_it(self) -> None:
        for has, left in (("yes", ["None"]), ("no", ["{}"])):
            with self.subTest(has), run("forgotten", has, env=phantom()) as result:
                self.assertEqual((result.code, result.complaints()), (0, []), result.err)
                self.assertEqual(sorted(set(result.out.split())), left)


class TestVariables(unittest.TestCase):
    """Tests reading the local variables of running functions without the copy that Python before 3.13 keeps in the
    frame."""

    def setUp(self) -> None:
        torch_compat.reads_variables.cache_clear()
        self.addCleanup(torch_compat.reads_variables.cache_clear)

    def test_they_are_read_here(self) -> None:
        def function() -> dict[str, Any]:
            kept = 1
            return {**torch_compat.variables(sys._getframe()), "kept again": kept}

        self.assertTrue(torch_compat.reads_variables())
        self.assertEqual(function(), {"kept": 1, "kept again": 1})

    def test_none_where_the_copy_stays(self) -> None:
        def function() -> dict[str, Any]:
            kept = 1
            return {**torch_compat.variables(sys._getframe()), "kept again": kept}

        with (
            mock.patch.object(torch_compat, "_COPIES", True),
            mock.patch.object(torch_compat, "_uncopied", lambda frame: dict(frame.f_locals)),
        ):
            self.assertFalse(torch_compat.reads_variables() and sys.version_info < (3, 13))
            if sys.version_info < (3, 13):
                self.assertEqual(function(), {"kept again": 1})


if __name__ == "__main__":
    unittest.main()
