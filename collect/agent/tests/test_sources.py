"""How the agent is built: by its sources. No torch is needed."""

from __future__ import annotations

import ast
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "python" / "dpsight"
# From the ground up: a module imports from lower floors, and from its own where that is one house.
FLOORS = (
    {"kinds", "masking", "interruptions", "journal", "torch_compat", "torch_probes"},
    {"recorder"},
    {"tensors", "tags", "patch", "registry", "parameters", "nodes", "stages", "graph_safety"},
    {"hooks"},
    {"taggers"},
    {"oom", "endings", "environment", "prediction"},
    {"api"},
    {"agent"},
)
BY_ITSELF = {"hooks"}  # no module of these floors imports another of its own
MOST_LINES = 500


def modules() -> dict[str, ast.Module]:
    """The agent's modules by their names below dpsight; "" is the package itself."""
    out = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        out[name] = ast.parse(file.read_text(encoding="utf-8"))
    return out


def imported(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The agent's modules that one imports, wherever it does."""
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
                    inside.pop()  # a name that the module defines
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
        floor_of = {name: i for i, names in enumerate(FLOORS) for name in names}
        wrong = []
        for name, others in self.imports.items():
            room = name.split(".")[0]
            if not room:
                continue  # the package itself exports what a script may call
            for other in others:
                to = other.split(".")[0]
                lower = floor_of[to] < floor_of[room]
                same = floor_of[to] == floor_of[room] and not (room in BY_ITSELF and name != room)
                tagger_of_hook = FLOORS[floor_of[room]] == {"taggers"} and to == "hooks"
                if not (lower or same) or tagger_of_hook:
                    wrong.append(f"{name} imports {other}")
        self.assertEqual(wrong, [])

    def test_functions_import_nothing(self) -> None:
        """But for what a script may call: one that nobody records does not load the agent."""
        found = {
            name
            for name, tree in self.modules.items()
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for node in ast.walk(function)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        self.assertEqual(found, {"api"})

    def test_state_lives_in_instances(self) -> None:
        names = [
            f"{module}: {name}"
            for module, tree in self.modules.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Global)
            for name in node.names
        ]
        self.assertLess(len(names), 10, names)

    def test_files_are_of_a_size(self) -> None:
        sizes = {name: tree.body[-1].end_lineno or 0 for name, tree in self.modules.items() if tree.body}
        self.assertEqual({name: size for name, size in sizes.items() if size > MOST_LINES}, {})


if __name__ == "__main__":
    unittest.main()
