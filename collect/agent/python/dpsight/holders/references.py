"""The steps of a path: how one Python object refers to another. Finding steps runs no code of the script: type() tells
an object's type, and containers are read by the built-in types' own methods."""

from __future__ import annotations

import collections
import functools
import gc
import os
import sys
import weakref
from collections.abc import Iterable, Iterator
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any, NamedTuple

from dpsight.tensors import class_dict, class_order, fields
from dpsight.torch_compat import variables

_LONGEST_KEY = 40
_SEQUENCES = (list, tuple, collections.deque)
_SUSPENDED = ((GeneratorType, "gi_frame"), (CoroutineType, "cr_frame"), (AsyncGeneratorType, "ag_frame"))


class Step(NamedTuple):
    """A step of a path, from an object to an object that it refers to."""

    kind: str  # one of the constants below
    text: str = ""


INDEX = "index"  # an entry, named by the text in brackets
ATTRIBUTE = "attribute"
FIELDS = "fields"  # an object's dictionary
LOCAL = "local"  # a variable of a function
CELL = "cell"  # the contents of a closure's cell
CLOSURE = "closure"  # a function's cells
DEFAULTS = "defaults"  # a function's default arguments
CALLBACK = "callback"  # the callback of a weak reference
SILENT = "silent"  # adds no words to the path: the next object has words of its own
PART = "part"  # an unknown kind of reference


def steps(holder: Any, wanted: dict[int, Any]) -> Iterator[tuple[int, Step]]:
    """The objects among wanted to which a holder refers, by id(), with the steps that lead to them."""
    found = False
    for target, step in _steps(holder, type(holder), wanted):
        found = True
        yield target, step
    if not found:
        for other in gc.get_referents(holder):
            if id(other) in wanted:
                yield id(other), Step(PART)


def _steps(holder: Any, kind: type, wanted: dict[int, Any]) -> Iterable[tuple[int, Step]]:
    if issubclass(kind, dict):
        entries: Iterable[tuple[Any, Any]] = dict.items(holder)
        return [(id(v), Step(INDEX, _key(k))) for k, v in entries if id(v) in wanted]
    for container in _SEQUENCES:
        if issubclass(kind, container):
            values = enumerate(container.__iter__(holder))
            return [(id(v), Step(INDEX, str(i))) for i, v in values if id(v) in wanted] + _own(holder, kind, wanted)
    if kind is CellType:
        return _known([(_content(holder), Step(CELL))], wanted)
    if kind is FunctionType:
        parts = [(holder.__closure__, Step(CLOSURE)), (holder.__defaults__, Step(DEFAULTS))]
        parts += [(holder.__kwdefaults__, Step(DEFAULTS)), (holder.__dict__, Step(FIELDS))]
        return _known(parts, wanted)
    if kind is FrameType:
        return _known([(v, Step(LOCAL, k)) for k, v in variables(holder).items()], wanted)
    for suspended, attribute in _SUSPENDED:
        if kind is suspended:
            frame = getattr(holder, attribute)
            if frame is None:
                return ()
            local = [(v, Step(LOCAL, k)) for k, v in variables(frame).items()]
            return _known([*local, (frame, Step(SILENT))], wanted)
    if kind is TracebackType:
        return _known([(holder.tb_frame, Step(SILENT)), (holder.tb_next, Step(SILENT))], wanted)
    if issubclass(kind, weakref.ReferenceType):
        return _known([(holder.__callback__, Step(CALLBACK))], wanted)
    if kind is functools.partial:
        parts = [(holder.args, Step(ATTRIBUTE, "args")), (holder.keywords, Step(ATTRIBUTE, "keywords"))]
        return _known([*parts, (holder.func, Step(SILENT))], wanted)
    if kind is MethodType:
        return _known([(holder.__self__, Step(SILENT)), (holder.__func__, Step(SILENT))], wanted)
    if issubclass(kind, BaseException):
        names = ("__traceback__", "__cause__", "__context__")
        get = BaseException.__getattribute__
        return _known([(get(holder, name), Step(SILENT)) for name in names], wanted) + _own(holder, kind, wanted)
    return _own(holder, kind, wanted)


def _known(parts: Iterable[tuple[Any, Step]], wanted: dict[int, Any]) -> list[tuple[int, Step]]:
    return [(id(value), step) for value, step in parts if id(value) in wanted]


def _own(holder: Any, kind: type, wanted: dict[int, Any]) -> list[tuple[int, Step]]:
    """The steps of an object's attributes, including those in slots. A class keeps its attributes in a dictionary that
    only the garbage collector can return."""
    if issubclass(kind, type):
        own = class_dict(holder)
        return [(id(d), Step(FIELDS)) for d in gc.get_referents(holder) if type(d) is dict and id(d) in wanted] + [
            (id(v), Step(ATTRIBUTE, k)) for k, v in own.items() if type(k) is str and id(v) in wanted
        ]
    found: list[tuple[int, Step]] = []
    own = fields(holder)
    if own is not None:
        if id(own) in wanted:
            found.append((id(own), Step(FIELDS)))
        found += [(id(v), Step(ATTRIBUTE, k)) for k, v in own.items() if type(k) is str and id(v) in wanted]
    for cls in class_order(kind):
        for name, slot in class_dict(cls).items():
            if type(slot) is MemberDescriptorType:
                try:
                    value = slot.__get__(holder)
                except (AttributeError, TypeError):
                    continue  # an empty slot
                if id(value) in wanted:
                    found.append((id(value), Step(ATTRIBUTE, name)))
    return found


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # an empty cell


def _key(key: Any) -> str:
    """A dictionary's key as a path shows it: a text or a number as Python writes it, else its type."""
    if type(key) in (str, int, bool, type(None)):
        text = repr(key)
        return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}…"
    if type(key) is tuple and all(type(k) in (str, int) for k in key) and len(key) <= 4:
        return ", ".join(map(_key, key))
    return f"a {type(key).__name__}"


# Names of objects on a path.


def function_name(function: FunctionType) -> str:
    """The name of a function in a path."""
    return f"{function.__qualname__.replace('<locals>.', '')}()"


def frame_name(frame: FrameType) -> str:
    """The name of the function that a frame runs."""
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)
    return "the script" if name == "<module>" else f"{name.replace('<locals>.', '')}()"


def caught_at(error: BaseException) -> str:
    """The name of an exception in a path: where it was caught, by the first entry of its traceback."""
    first = BaseException.__getattribute__(error, "__traceback__")
    name = type(error).__name__
    if first is None:
        return name
    return f"exception caught at {os.path.basename(first.tb_frame.f_code.co_filename)}:{first.tb_lineno}"


def module_name(entries: Any) -> str | None:
    """The name of the module whose globals a dictionary is; None if it is none."""
    name = dict.get(entries, "__name__")
    module = sys.modules.get(name) if type(name) is str else None
    if type(module) is not ModuleType or module.__dict__ is not entries:
        return None
    return name


def closure_name(function: FunctionType, index: int) -> str:
    """The name of the variable in a function's cell with this index."""
    names = function.__code__.co_freevars
    return names[index] if index < len(names) else str(index)


def default_name(function: FunctionType, step: str) -> str:
    """The argument whose default a step leads to, by the argument's position or name."""
    if not step.isdecimal():
        return step.strip("'")
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    at = len(names) - len(function.__defaults__ or ()) + int(step)
    return names[at] if 0 <= at < len(names) else step
