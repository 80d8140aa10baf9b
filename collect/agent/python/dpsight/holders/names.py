"""The names that a path can begin with: globals of the script, variables of the functions under way in all threads, and
the gradients that parameters keep."""

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
from dpsight.torch_compat import variables

_MOST = 100_000  # names
# Many names may refer to one of these.
_COMMON = (str, bytes, int, float, complex, bool, type(None), ModuleType, type(len))


def names() -> dict[int, Name]:
    """By id(), the objects that have a name. A global counts before a variable, and of these that of the outermost
    function."""
    found: dict[int, Name] = {}
    for module, script_module in script_tensors.scripts():
        prefix = "" if module == "__main__" else f"{module}."
        for key, value in list(script_module.__dict__.items()):
            if type(key) is str and not key.startswith("__") and _tells(value):
                found.setdefault(id(value), Name(f"global {prefix}{key}"))
    _add_variables(script(), "", found)
    own = threading.get_ident()
    others = sys._current_frames()
    others.pop(own, None)  # else this frame is its own variable, and stays
    for top in others.values():
        outermost = list(frames(top))[-1]
        if not ours(outermost):
            _add_variables(top, _thread(outermost), found)
    return found


def _tells(value: Any) -> bool:
    return type(value) not in _COMMON and not issubclass(type(value), (type, recorder.torch.nn.Module))


def _add_variables(top: FrameType | None, thread: str, found: dict[int, Name]) -> None:
    for frame in reversed(list(frames(top))):
        if ours(frame) or len(found) > _MOST:
            continue
        for key, value in variables(frame).items():
            if _tells(value):
                found.setdefault(id(value), Name(f"local {key}", f" of {frame_name(frame)}{thread}", variable=True))


def _thread(outermost: FrameType) -> str:
    """What a thread is called: its first function has its object."""
    own = variables(outermost).get("self")
    if issubclass(type(own), threading.Thread):
        name: property = vars(threading.Thread)["name"]
        return f" in thread {name.__get__(own)}"
    return " in another thread"


def title(value: Any) -> str | None:
    """What a model's module is called; None = it is none."""
    return registry.title(value) if issubclass(type(value), recorder.torch.nn.Module) else None


def gradients(found: dict[int, Name], parameters: list[Any], safe: Safe | None) -> set[int]:
    """Names the gradients of parameters where they may be read, and returns where they lie."""
    places: set[int] = set()
    for p in parameters:
        if safe is not None and not safe(p.device):
            continue
        gradient = p.grad
        if gradient is not None:
            found[id(gradient)] = Name(f"{recorder.text(registry.parameter(p)) or 'parameter'}.grad")
            if gradient.layout is recorder.torch.strided:
                places.add(gradient.untyped_storage().data_ptr())
    return places
