"""Hides the agent's code from Dynamo: after a graph break Dynamo tries to compile every Python function that is
called."""

from __future__ import annotations

import sys
from types import CodeType, FunctionType
from typing import Any

from dpsight import torch_compat
from dpsight.recorder import recorder


def hide() -> None:
    """Makes Dynamo skip every code object of this package, including nested ones. Call it after all modules are
    loaded."""
    skip = torch_compat.dynamo_skips(recorder.torch)
    if skip is None:
        return
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "dpsight":
            for code in _codes(module):
                skip(code)


def _codes(module: Any) -> list[CodeType]:
    out: list[CodeType] = []
    todo: list[Any] = [v for v in vars(module).values() if getattr(v, "__module__", None) == module.__name__]
    while todo:
        value = todo.pop()
        if isinstance(value, type):
            todo.extend(vars(value).values())
        elif isinstance(value, (staticmethod, classmethod)):
            todo.append(value.__func__)
        elif isinstance(value, FunctionType):
            todo.append(value.__code__)
            todo.append(getattr(value, "__wrapped__", None))  # a decorated function: the module has only its wrapper
        elif hasattr(value, "__wrapped__"):  # a function behind functools.cache
            todo.append(value.__wrapped__)
        elif isinstance(value, CodeType):
            out.append(value)
            todo.extend(c for c in value.co_consts if isinstance(c, CodeType))
    return out
