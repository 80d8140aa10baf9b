"""Tests the structure of the agent's sources: imports, sizes and state. Needs no torch."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "python" / "dpsight"
GROUND = {"kinds", "interruptions", "masking", "journal", "torch_compat"}
LOOKING = {"tensors", "tags", "registry", "parameters", "nodes", "graph_safety"}
# Hooks must not import modules that know addresses of tensors, since hooks only report what happens.
NOT_FOR_HOOKS = {"tags", "parameters", "graph_safety"}
# The groups of modules that each group may import. A module's group is the first part of its name.
MAY_IMPORT: dict[str, set[str]] = {
    "kinds": set(),
    "adapters": {"kinds"},
    "masking": set(),
    "interruptions": set(),
    "journal": {"kinds", "interruptions", "masking"},
    "torch_compat": {"interruptions"},
    "torch_probes": {"torch_compat"},
    "recorder": {*GROUND, "recorder"},
    # The groups from here to graph_safety are below hooks and taggers.
    "patch": {"recorder"},
    "stages": {"kinds", "recorder", "patch"},
    "tensors": {"kinds", "interruptions", "torch_compat", "recorder"},
    "nodes": {"torch_compat", "recorder"},
    "registry": {"kinds", "torch_compat", "recorder", "tensors"},
    "tags": {"kinds", "interruptions", "torch_compat", "recorder", "tensors"},
    "parameters": {"adapters", "kinds", "recorder", "tensors", "registry", "tags"},
    "graph_safety": {"torch_compat", "recorder", "registry"},
    "hooks": {"adapters", "patch", "stages", *GROUND - {"masking", "journal"}, "recorder", *LOOKING - NOT_FOR_HOOKS},
    "taggers": {"adapters", "kinds", "interruptions", "torch_compat", "recorder", "patch", *LOOKING, "taggers"},
    "holders": {
        "kinds",
        "masking",
        "torch_compat",
        "recorder",
        *LOOKING - {"parameters", "nodes"},
        "taggers",
        "holders",
    },
    "failed_requests": {
        "kinds",
        "lines",
        "interruptions",
        "torch_compat",
        "recorder",
        "patch",
        "nodes",
        "registry",
        "taggers",
        "holders",
    },
    "endings": {"kinds", "interruptions", "masking", "recorder", "patch", "tags"},
    "environment": {"kinds", "torch_compat", "recorder"},
    "garbage": {"recorder", "lines"},
    "watchdog": {"torch_compat", "recorder"},
    "prediction": {"kinds", "torch_compat", "recorder", "patch", "garbage", "watchdog"},
    "script_code": {"kinds", "recorder"},
    "lines": {"kinds", "torch_compat", "recorder", "script_code", "nodes", "lines"},
    "surveys": {"kinds", "torch_compat", "recorder", "lines", "holders", "tensors", "interruptions"},
    "api": {"kinds", "recorder", "tags", "client", "flight"},
    "flight": {
        "agent",
        "api",
        "client",
        "environment",
        "holders",
        "interruptions",
        "journal",
        "kinds",
        "masking",
        "recorder",
        "registry",
        "tensors",
        "flight",
    },
    "client": {"client"},
}
ANYTHING = {"agent", "__main__"}  # these install all others
# Only their own modules may set fields of these objects.
OWNERS = {"recorder", "thread", "runs", "steps", "unphased", "stamps", "drains", "codes", "registry", "tags", "nodes"}
MOST_LINES = 500


def modules() -> dict[str, ast.Module]:
    """Returns the syntax trees of the agent's modules, by their names below dpsight; "" is the package itself."""
    out = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        out[name] = ast.parse(file.read_text(encoding="utf-8"))
    return out


def imported(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """Yields the agent's modules that a module imports, at any place in it."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "an import that is relative"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "dpsight":
                inside = name.split(".")[1:]
                while inside and ".".join(inside) not in known:
                    inside.pop()  # the last part is a name that the module defines
                if inside:
                    yield ".".join(inside)


class TestSources(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.modules = modules()
        cls.imports = {name: set(imported(tree, set(cls.modules))) for name, tree in cls.modules.items()}
        assert len(cls.modules) > 40 and sum(map(len, cls.imports.values())) > 150, "the sources were not found"

    def test_no_circle(self) -> None:
        done: set[str] = set()
        path: list[str] = []

        def visit(name: str) -> None:
            self.assertNotIn(name, path, f"a circle: {' → '.join([*path, name])}")
            if name in done:
                return
            path.append(name)
            for other in sorted(self.imports[name]):
                visit(other)
            path.pop()
            done.add(name)

        for name in self.modules:
            visit(name)

    def test_floors(self) -> None:
        wrong, used = [], set()
        for name, others in self.imports.items():
            room = name.split(".")[0]
            if not room or room in ANYTHING:
                continue  # the package itself exports the functions that a script may call
            for other in others:
                to = other.split(".")[0]
                used.add((room, to))
                if to not in MAY_IMPORT[room]:
                    wrong.append(f"{name} imports {other}")
        self.assertEqual(wrong, [])
        allowed = {(room, to) for room, others in MAY_IMPORT.items() for to in others}
        self.assertEqual(allowed - used, set(), "allowed, and nobody needs it")

    def test_fields_are_written_by_their_owner(self) -> None:
        wrong = []
        for name, tree in self.modules.items():
            if name.split(".")[0] == "recorder":
                continue  # modules of the recorder may set each other's fields
            for node in ast.walk(tree):
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                    continue
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                            if isinstance(part.value, ast.Name) and part.value.id in OWNERS:
                                wrong.append(f"{name}:{part.lineno} sets {part.value.id}.{part.attr}")
        self.assertEqual(wrong, [])

    def test_functions_import_nothing(self) -> None:
        """No function imports a module, except those that a script may call: a script that is not recorded loads
        neither the agent nor the code that reads tables."""
        found = {
            name
            for name, tree in self.modules.items()
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for node in ast.walk(function)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        self.assertEqual(found, {"api", "client.store", "flight.boot"})

    def test_state_lives_in_instances(self) -> None:
        names = [
            f"{module}: {name}"
            for module, tree in self.modules.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Global)
            for name in node.names
        ]
        self.assertLess(len(names), 10, names)
        # A forked child would begin with its parent's content of a mutable global. Names of constants are in capitals.
        displays = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
        mutable = [
            f"{module}:{node.lineno} {ast.unparse(target)}"
            for module, tree in self.modules.items()
            for node in tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, displays)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if not ast.unparse(target).isupper() and ast.unparse(target) != "__all__"
        ]
        self.assertEqual(mutable, [])

    def test_files_are_of_a_size(self) -> None:
        sizes = {name: tree.body[-1].end_lineno or 0 for name, tree in self.modules.items() if tree.body}
        self.assertEqual({name: size for name, size in sizes.items() if size > MOST_LINES}, {})

    def test_unrecorded(self) -> None:
        """In a script that is not recorded, importing the package takes less than 2 ms, and its calls do nothing."""

        def python(*arguments: str) -> subprocess.CompletedProcess[str]:
            env = {k: v for k, v in os.environ.items() if not k.startswith("DPSIGHT_")}
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            env |= {"PYTHONPATH": str(ROOT.parent), "PYTHONPYCACHEPREFIX": cache.name}
            command = [sys.executable, "-S", *arguments]  # -S: without the modules that other packages make site import
            return subprocess.run(command, env=env, check=True, capture_output=True, text=True)

        cache = tempfile.TemporaryDirectory()
        self.addCleanup(cache.cleanup)

        what = "import os, sys; before = set(sys.modules); import dpsight; print(*sorted(set(sys.modules) - before))"
        self.assertEqual(python("-c", what).stdout.split(), ["__future__", "dpsight", "dpsight.api"])
        took = []
        for _ in range(10):
            line = python("-X", "importtime", "-c", "import os, dpsight").stderr.splitlines()[-1]
            self.assertTrue(line.endswith("| dpsight"), line)
            took.append(int(line.split("|")[1]))
        self.assertLess(min(took), 2000, "µs to import dpsight")
        self.assertEqual(python(str(Path(__file__).with_name("typed.py"))).stderr, "")


if __name__ == "__main__":
    unittest.main()
