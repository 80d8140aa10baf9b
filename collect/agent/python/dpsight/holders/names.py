"""The names with which a path can begin: globals of the script, variables of running functions in all threads, and the
gradients of parameters."""

from __future__ import annotations

import sys
import threading
from types import FrameType, ModuleType
from typing import Any

from dpsight.graph_safety import Safe
from dpsight.holders.climb import Name
from dpsight.holders.frames import frames, ours, script
from dpsight.holders.references import frame_name
from dpsight.recorder import recorder
from dpsight.registry import registry
from dpsight.taggers.script_tensors import script_tensors
from dpsight.tensors import held
from dpsight.torch_compat import variables

_MOST = 100_000  # the most names that are collected
# Objects of these types have too many names to be useful.
_COMMON = (str, bytes, int, float, complex, bool, type(None), ModuleType, type(len))


class Names:
    """The objects that have a name, by id(). A global takes precedence over a variable, and a variable of an outer
    function over an inner one's. Modules cannot begin a path, and are kept apart."""

    def __init__(self) -> None:
        self.found: dict[int, Name] = {}
        self.modules: set[int] = set()
        for module, script_module in script_tensors.scripts():
            prefix = "" if module == "__main__" else f"{module}."
            for key, value in list(script_module.__dict__.items()):
                if type(key) is str and not key.startswith("__"):
                    self._add(value, Name(f"global {prefix}{key}"))
        self._add_variables(script(), "")
        others = sys._current_frames()
        others.pop(threading.get_ident(), None)  # otherwise this frame would be its own variable, and stay alive
        for top in others.values():
            outermost = list(frames(top))[-1]
            if not ours(outermost):
                self._add_variables(top, _thread(outermost))

    def _add(self, value: Any, name: Name) -> None:
        if issubclass(type(value), recorder.torch.nn.Module):
            self.modules.add(id(value))
        elif type(value) not in _COMMON and not issubclass(type(value), type):
            self.found.setdefault(id(value), name)

    def _add_variables(self, top: FrameType | None, thread: str) -> None:
        for frame in reversed(list(frames(top))):
            if ours(frame) or len(self.found) > _MOST:
                continue
            for key, value in variables(frame).items():
                self._add(value, Name(f"local {key}", f" of {frame_name(frame)}{thread}", variable=True))


def _thread(outermost: FrameType) -> str:
    """The name of a thread, from its first function, which holds the thread's object."""
    own = variables(outermost).get("self")
    if issubclass(type(own), threading.Thread):
        name: property = vars(threading.Thread)["name"]
        return f" in thread {name.__get__(own)}"
    return " in another thread"


def title(value: Any) -> str | None:
    """The name of a module of a model; None if the object is no such module."""
    return registry.title(value) if issubclass(type(value), recorder.torch.nn.Module) else None


def gradients(found: dict[int, Name], parameters: list[Any], safe: Safe | None) -> set[int]:
    """Names the gradients of parameters, as far as they may be read, and returns their addresses."""
    places: set[int] = set()
    for p in parameters:
        if safe is not None and not safe(p.device):
            continue
        gradient = p.grad
        if gradient is not None:
            found[id(gradient)] = Name(f"{recorder.text(registry.parameter(p)) or 'parameter'}.grad")
            places.update(address for _, address, _ in held(gradient))
    return places
