"""Tests that private names of torch stand in one module of the agent and in one of the phantom GPU. Reads the sources,
and needs no torch."""

from __future__ import annotations

import ast
import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

AGENT = Path(__file__).resolve().parent.parent / "python"
sys.path.insert(0, str(AGENT))
from dpsight import adapters  # noqa: E402

sys.path.pop(0)

ROOM = AGENT / "dpsight" / "torch_compat.py"
PHANTOM = AGENT.parent.parent / "phantom" / "pysrc"
PHANTOM_ROOM = PHANTOM / "phantom_torch.py"

# Private names that any module may use: Python's, the names of libraries in adapters.py, and Opacus's _module.
PYTHON = {"_getframe", "_current_frames", "_exit"}
LIBRARIES = {"_module"}.union(
    *(
        {*adapter.functions, *adapter.layers, *adapter.parameters}.union(*(c.methods for c in adapter.classes))
        for adapter in adapters.ADAPTERS
    )
)
# The agent's own private name in sys.
OURS = {"_dpsight_boot"}

_PRIVATE = re.compile(r"_([a-z]\w*|C)")
_INSIDE_TORCH = re.compile(r"\btorch(\.\w+)*\._[a-z]|\b_C\.")


def own_names(tree: ast.Module) -> set[str]:
    """Returns the names that the classes of a module define."""
    out: set[str] = set()
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(cls):
            if isinstance(node, ast.FunctionDef):
                out.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                out.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                out.add(node.id)
    return out


def private_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each use of a private name that the module does not define."""
    own = own_names(tree)
    texts = {id(s.value) for s in ast.walk(tree) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            mine = isinstance(node.value, ast.Name) and (node.value.id in ("self", "cls") or node.attr in own)
            if _PRIVATE.fullmatch(node.attr) and not mine and node.attr not in PYTHON | OURS:
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            name = _PRIVATE.fullmatch(node.value) is not None and node.value not in PYTHON | LIBRARIES | OURS
            if (name and node.value not in own) or _INSIDE_TORCH.search(node.value):
                yield node.lineno, repr(node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            yield node.lineno, f"from {node.module}"


class TestPrivateNames(unittest.TestCase):
    def test_torchs_stand_in_one_file(self) -> None:
        files = [AGENT / "sitecustomize.py", *sorted((AGENT / "dpsight").rglob("*.py"))]
        self.assertGreater(len(files), 10)
        self.check(files, ROOM)

    def test_of_the_phantoms_modules_in_another(self) -> None:
        self.check(sorted(PHANTOM.glob("*.py")), PHANTOM_ROOM)

    def check(self, files: list[Path], room: Path) -> None:
        """Checks that only the file `room` uses private names of others."""
        self.assertIn(room, files)
        found = [
            f"{file.name}:{line}: {name}"
            for file in files
            if file != room
            for line, name in private_uses(ast.parse(file.read_text()))
        ]
        self.assertEqual(found, [], f"what torch does not promise to keep stands in {room.name} alone")

    def test_every_way_to_use_one_is_seen(self) -> None:
        for text in (
            "state.torch._C._cuda_getDevice()",
            "torch._disable_dynamo(f)",
            "getattr(torch, '_C')",
            "module._parameters.items()",
            "vars(module)['_call_impl']",
            "sys.modules.get('torch._ops')",
            "p._cdata",
            "getattr(variable, f'_raw{x}')",
            "from torch import _C",
            "class A:\n    def f(self):\n        return self.torch._C",
        ):
            with self.subTest(text):
                self.assertTrue(list(private_uses(ast.parse(text))))
        for text in (
            "self._found.append(1)",
            "sys._getframe(1)",
            "class A:\n    def f(self):\n        self._x = 1\na._x",
            "p.__dict__",
        ):
            with self.subTest(text):
                self.assertEqual(list(private_uses(ast.parse(text))), [])

    def test_the_rooms_have_them(self) -> None:
        for room in (ROOM, PHANTOM_ROOM):
            self.assertGreater(len(list(private_uses(ast.parse(room.read_text())))), 30, room.name)


if __name__ == "__main__":
    unittest.main()
