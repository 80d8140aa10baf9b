"""What models are given and give back in a step, remembered until it ends without being kept. Should a request fail,
the batch is to have its name, which only instrumented steps tag, and the graph behind an output is to be found: a
script need not have a variable of it yet."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any

from dpsight import kinds, tags
from dpsight.interruptions import by_script
from dpsight.state import state
from dpsight.tensors import Weak, class_dict, expired, fields, quiet, storages, weak

_MOST = 64  # tensors
_DEPTH = 2  # containers inside each other: this runs at every call of a model
_CONTAINERS = (tuple, list, dict)

# Of bare steps: kind, address, bytes, dtype, and a weak reference to the storage.
_given: deque[tuple[int, int, int, int, Weak | None]] = deque(maxlen=_MOST)
_outputs: deque[Any] = deque(maxlen=_MOST)  # weak references to tensors with a graph


@quiet
def remember(kind: int, values: Any) -> None:
    """Remembers the tensors among values."""
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
        if not tensor.is_cuda:
            return
        if not state.instrumented:
            for storage, dtype in storages(tensor):
                if storage.nbytes():
                    _given.append((kind, storage.data_ptr(), storage.nbytes(), dtype, weak(storage)))
        # A parameter that a model gives back has no graph, and torch swaps none that something refers to weakly.
        if kind == kinds.OUTPUT and tensor.requires_grad and not tensor.is_leaf:
            _outputs.append(weakref.ref(tensor))
    except (RuntimeError, TypeError) as error:  # a subclass without a storage, or that nothing can refer to weakly
        if by_script(error):
            raise


def records() -> list[tags.Record]:
    """Records of those that are still held."""
    return [(kind, at, size, 0, 0, dtype) for kind, at, size, dtype, ref in list(_given) if not expired(ref)]


def outputs() -> list[Any]:
    """The outputs that are still there."""
    return [tensor for tensor in (ref() for ref in list(_outputs)) if tensor is not None]


def step_ended() -> None:
    """The next step is given tensors of its own."""
    _given.clear()
    _outputs.clear()


def after_fork() -> None:
    """The parent's step is not ours."""
    step_ended()
