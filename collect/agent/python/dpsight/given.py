"""What models are given and give back in a step, remembered until it ends without being kept. Should a request fail,
the batch is to have its name, which only instrumented steps tag, and the graph behind an output is to be found: a
script need not have a variable of it yet."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dpsight import kinds, tags
from dpsight.interruptions import by_script
from dpsight.state import state
from dpsight.tensors import class_dict, fields, quiet

_MOST = 64  # tensors
_DEPTH = 2  # containers inside each other: this runs at every call of a model
_CONTAINERS = (tuple, list, dict)

# Kinds, and weak references to the tensors, not to their storages: those take ten times as long to make, in every step,
# and torch keeps a tensor's object for as long as a graph has the tensor.
_given: deque[tuple[int, Any]] = deque(maxlen=_MOST)

# torch's, looked up once: after the model has run, each look-up in its large modules would take as long as the work.
_plain: type
_modes: Callable[[], int]


def install() -> None:
    """Looks up what remember needs."""
    global _plain, _modes
    _plain, _modes = state.torch.Tensor, state.torch._C._len_torch_function_stack


def remember(kind: int, values: Any) -> None:
    """Remembers the tensors among values."""
    plain = values if type(values) is tuple else (values,)
    for value in plain:
        if type(value) is not _plain:
            break
    else:
        # What most models are given and give: looked at without quiet()'s context where nobody would see it.
        if not _modes():
            for value in plain:
                _tensor(kind, value)
            return
    _remember(kind, values)


@quiet
def _remember(kind: int, values: Any) -> None:
    _look(kind, values, 0)


def _look(kind: int, value: Any, depth: int) -> None:
    if type(value) in _CONTAINERS:
        if depth <= _DEPTH and len(value) <= _MOST:
            inner: Iterable[Any] = value.values() if type(value) is dict else value
            for each in inner:
                _look(kind, each, depth + 1)
    elif issubclass(type(value), state.torch.Tensor):
        _tensor(kind, value)
    elif depth <= 1 and any("__dataclass_fields__" in class_dict(cls) for cls in type(value).__mro__):
        _look(kind, fields(value) or {}, _DEPTH)


def _tensor(kind: int, tensor: Any) -> None:
    try:
        # torch swaps no parameter that something refers to weakly, and a model may be given one, or give one back.
        if tensor.is_cuda and not (tensor.requires_grad and tensor.is_leaf):
            _given.append((kind, weakref.ref(tensor)))
    except (RuntimeError, TypeError) as error:  # a subclass that says nothing, or that nothing can refer to weakly
        if by_script(error):
            raise


def _alive() -> list[tuple[int, Any]]:
    found = [(kind, ref()) for kind, ref in list(_given)]
    return [(kind, tensor) for kind, tensor in found if tensor is not None]


def records() -> list[tags.Record]:
    """Records of those that are still held, which an instrumented step has tagged. Call it with __torch_function__
    off."""
    return [] if state.instrumented else [r for kind, tensor in _alive() for r in tags.of(kind, tensor)]


def outputs() -> list[Any]:
    """The outputs that are still there, in instrumented steps too."""
    return [tensor for kind, tensor in _alive() if kind == kinds.OUTPUT]


def step_ended() -> None:
    """The next step is given tensors of its own."""
    _given.clear()


def after_fork() -> None:
    """The parent's step is not ours."""
    step_ended()
