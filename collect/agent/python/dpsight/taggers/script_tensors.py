"""Finds the tensors that a script keeps under names of its own: module globals, closures, default arguments, and the
attributes of such objects. Asking the garbage collector who refers to a tensor would take seconds. Walking down from
the script's names, over a limited number of objects, takes a millisecond.

The walk runs no code of the script: type() tells an object's type, since isinstance() would ask the object for its
class. Containers are read by the built-in type's own methods, and an object's attributes from its dictionary, by the
interpreter's own descriptor. holders/ looks at local variables, in the running functions.
"""

from __future__ import annotations

import collections
import functools
import os
import sys
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from dpsight import kinds
from dpsight.recorder import recorder
from dpsight.registry import registry
from dpsight.taggers.tensor_hooks import tensor_hooks
from dpsight.tags import Record, tags
from dpsight.tensors import MOST_ENTRIES, addresses, class_dict, fields, plain_types, quiet
from dpsight.torch_compat import CHILDREN, HOOKS

_MOST = 20_000  # the most objects that one walk visits
_FEW = 4_000  # after warm-up there is a walk only if the last one visited at most this many
_MOST_MODULES = 200
_LEAST = 4096  # bytes: smaller tensors, such as scalars in DP closures, get the category of their phase of birth
_DEPTH = 4  # the most containers and objects inside one another
_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), type, range, CellType)
# Tensors of these modules have tags, or no particular holder.
_OTHERS = ("torch.nn.", "torch.optim.", "torch.cuda.", "torch.autograd.", "dpsight.")


class ScriptTensors:
    """Walks the script's names."""

    def __init__(self) -> None:
        self._looked = 0  # objects that the latest walk visited
        self._failed = False
        self._beside: tuple[int, list[str]] = (0, [])  # number of modules, and the script's own at that time

    def affordable(self) -> bool:
        """Whether a walk is cheap enough for every instrumented step, as the latest one during warm-up showed."""
        return self._looked <= _FEW

    def records(self, known: set[int]) -> list[Record]:
        """Records of the tensors that the script keeps. Tensors at addresses with another known purpose are left out.
        After its first failure it returns none, while all other tags continue."""
        if self._failed:
            return []
        try:
            found = self._walk(known)
            lasting = tags.known_places() if found else ()
            return [r for r in found if r[1] not in lasting]
        except Exception as error:
            recorder.spared("looking at the script's tensors", error)
            self._failed = True
            return []

    @quiet
    def _walk(self, known: set[int]) -> list[Record]:
        walk = Walk(known)
        for where, module, value in self._places():
            walk.module = module
            walk.visit(value, where, 0)
            if walk.left <= 0:
                break
        self._looked = _MOST - walk.left
        return walk.out

    def _places(self) -> Iterator[tuple[str, int, Any]]:
        """Names, numbers of modules, and objects: first the hooks and functions of models, then the hooks of tensors,
        then the globals of the script's own modules."""
        for root in list(registry.roots()):
            for module in _tree(root):
                own, number = fields(module) or {}, registry.known(module)
                for attribute in HOOKS:
                    hooks = own.get(attribute)
                    if hooks and issubclass(type(hooks), dict):
                        for hook in list(dict.values(hooks)):
                            yield "hook", number, hook
                for value in list(own.values()):
                    if type(value) in (FunctionType, functools.partial, MethodType):
                        yield "function", number, value
        for number, hook in list(tensor_hooks.alive()):
            yield "tensor hook", number, hook
        for name, module in self.scripts():
            prefix = "" if name == "__main__" else f"{name}."
            for key, value in list(module.__dict__.items()):
                if type(key) is str and not key.startswith("__") and type(value) is not ModuleType:
                    yield f"global {prefix}{key}", 0, value

    def scripts(self) -> list[tuple[str, Any]]:
        """The script, and the modules in its folder or below, with their names."""
        main = sys.modules.get("__main__")
        if type(main) is not ModuleType:
            return []
        file = main.__dict__.get("__file__")
        if type(file) is not str:
            return [("__main__", main)]
        if self._beside[0] != len(sys.modules):  # finding the files of thousands of modules took most of a walk's time
            self._beside = (len(sys.modules), _names_beside(main, file))
        found = ((name, sys.modules.get(name)) for name in self._beside[1])
        return [("__main__", main), *((name, module) for name, module in found if type(module) is ModuleType)]


def _tree(root: Any) -> list[Any]:
    """A module and the modules inside it, from the dictionaries in which torch keeps them."""
    out, todo = [], [root]
    while todo and len(out) < _MOST:
        module = todo.pop()
        out.append(module)
        inner = (fields(module) or {}).get(CHILDREN)
        if inner and issubclass(type(inner), dict):
            todo.extend(m for m in list(dict.values(inner)) if issubclass(type(m), recorder.torch.nn.Module))
    return out


def _names_beside(main: ModuleType, file: str) -> list[str]:
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    out: list[str] = []
    for name, module in list(sys.modules.items()):
        where = module.__dict__.get("__file__") if type(module) is ModuleType else None
        if module is main or type(where) is not str or not where.startswith(folder) or name.startswith("dpsight"):
            continue
        if "site-packages" not in where and "dist-packages" not in where:
            out.append(name)
        if len(out) >= _MOST_MODULES:
            break
    return out


class Walk:
    """A walk: the objects that it has visited, and how many more it may visit."""

    def __init__(self, known: set[int]) -> None:
        self.left = _MOST
        self.out: list[Record] = []
        self.module = 0
        self.known = known
        self._seen: set[int] = set()

    def visit(self, value: Any, where: str, depth: int) -> None:
        """Visits a value and its contents."""
        kind = type(value)
        self.left -= 1
        if kind in _PLAIN or depth > _DEPTH or self.left <= 0 or id(value) in self._seen:
            return
        self._seen.add(id(value))  # ids are unique here: the objects stay alive during the walk
        if issubclass(kind, recorder.torch.Tensor):
            self.tensor(value, where)
        elif kind is FunctionType:
            self._function(value, depth)
        elif kind is functools.partial:
            self.visit(value.func, where, depth + 1)
            self._each([value.args, value.keywords], _of(value.func, where), depth)
        elif kind is MethodType:
            self.visit(value.__func__, where, depth + 1)
            self.visit(value.__self__, where, depth + 1)
        elif (inside := _entries(value, kind)) is not None:
            self._each(inside, where, depth)

    def _each(self, values: Iterable[Any], where: str, depth: int) -> None:
        for value in values:
            self.visit(value, where, depth + 1)

    def _function(self, function: Any, depth: int) -> None:
        name = function.__qualname__
        for cell in function.__closure__ or ():
            try:
                self.visit(cell.cell_contents, f"closure of {name}", depth + 1)
            except ValueError:
                continue  # an empty cell
        self._each(function.__defaults__ or (), f"default of {name}", depth)
        if function.__kwdefaults__:
            self._each(list(function.__kwdefaults__.values()), f"default of {name}", depth)

    def tensor(self, tensor: Any, where: str) -> None:
        """Notes a tensor."""
        if type(tensor) is not plain_types()[0] or not tensor.is_cuda:  # parameters have tags; subclasses have methods
            return
        for address, size, dtype in addresses(tensor):
            if size >= _LEAST and address not in self.known:
                self.known.add(address)
                self.out.append((kinds.HELD, address, size, recorder.tag_name(where), self.module, dtype))


def _of(function: Any, where: str) -> str:
    return f"partial of {function.__qualname__}" if type(function) is FunctionType else where


def _entries(value: Any, kind: type) -> list[Any] | None:
    """The contents of a container or an object; None if it is not looked into."""
    if issubclass(kind, dict):
        return list(dict.values(value)) if dict.__len__(value) <= MOST_ENTRIES else None
    for container in (list, tuple, collections.deque):
        if issubclass(kind, container):
            return list(container.__iter__(value)) if container.__len__(value) <= MOST_ENTRIES else None
    if issubclass(kind, (recorder.torch.nn.Module, recorder.torch.optim.Optimizer)):
        return None  # a module's attributes belong to it, not to the object that refers to it
    module = class_dict(kind).get("__module__")
    if type(module) is not str or module.startswith(_OTHERS):
        return None
    own = fields(value)
    return list(own.values()) if own and len(own) <= MOST_ENTRIES else None


script_tensors = recorder.part(ScriptTensors)
