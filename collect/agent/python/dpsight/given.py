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
from dpsight.tensors import class_dict, fields, numbers, quiet, storages
from dpsight.torch_compat import Weak, expired, private, weak

_MOST = 64  # tensors
_DEPTH = 2  # containers inside each other: this runs at every call of a model
_CONTAINERS = (tuple, list, dict)

# Of bare steps: kind, address, bytes, dtype, and a weak reference to the storage.
_given: deque[tuple[int, int, int, int, Weak | None]] = deque(maxlen=_MOST)
_outputs: deque[Any] = deque(maxlen=_MOST)  # weak references to tensors with a graph


# torch's, looked up once: after the model has run, each look-up in its large modules would take as long as the work.
_plain: type
_strided: Any
_modes: Callable[[], int]
_dtypes: dict[Any, int]


def install() -> None:
    """Looks up what remember needs."""
    global _plain, _strided, _modes, _dtypes
    torch = state.torch
    _plain, _strided, _modes = torch.Tensor, torch.strided, private.torch_function_modes
    _dtypes = numbers()


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
        if not tensor.is_cuda:
            return
        if not state.instrumented:
            if type(tensor) is _plain and tensor.layout is _strided:  # the common case, without a generator
                found: Iterable[tuple[Any, int]] = ((tensor.untyped_storage(), _dtypes.get(tensor.dtype, 0)),)
            else:
                found = storages(tensor)
            for storage, dtype in found:
                size = storage.nbytes()
                if size:
                    _given.append((kind, storage.data_ptr(), size, dtype, weak(storage)))
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
