"""Remembers the inputs and outputs of models until the step ends, without keeping them alive. Inputs and outputs are
needed if a request fails: the batch must get its tag, which only instrumented steps give, and the graph of an output
must be found although the script may have no variable for it yet."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dpsight import kinds
from dpsight.interruptions import by_script
from dpsight.recorder import MODULES, TAGS, events, recorder
from dpsight.tags import Record
from dpsight.tensors import class_dict, fields, numbers, quiet, storages
from dpsight.torch_compat import Weak, expired, private, weak

_MOST = 64  # most tensors that are remembered
_DEPTH = 2  # levels of containers that are looked into, since this runs at every call of a model
_CONTAINERS = (tuple, list, dict)


class StepIO:
    """The inputs and outputs of models in this step."""

    __slots__ = ("_dtypes", "_inputs", "_modes", "_outputs", "_plain", "_strided")

    # torch's functions are looked up once: after a model's call, a look-up in torch's large modules would take as long
    # as the work.
    _plain: type
    _strided: Any
    _modes: Callable[[], int]
    _dtypes: dict[Any, int]

    def __init__(self) -> None:
        # For bare steps: kind, address, bytes, dtype, and a weak reference to the storage, for each input.
        self._inputs: deque[tuple[int, int, int, int, Weak | None]] = deque(maxlen=_MOST)
        self._outputs: deque[Any] = deque(maxlen=_MOST)  # weak references to output tensors with a graph

    def install(self) -> None:
        """Subscribes to calls of models."""
        torch = recorder.torch
        self._plain, self._strided, self._modes = torch.Tensor, torch.strided, private.torch_function_modes
        self._dtypes = numbers()
        events.step_ended.subscribe(self._step_ended)
        events.model_called.subscribe(self._called)
        events.model_returned.subscribe(self._returned)

    def _called(self, _root: Any, args: Any) -> None:
        if recorder.cuda and recorder.tagging and recorder.level < TAGS:
            self.remember(kinds.INPUT, args)

    def _returned(self, kwargs: dict[str, Any], out: Any) -> None:
        if recorder.cuda and recorder.tagging:
            if kwargs and recorder.level < MODULES:
                self.remember(kinds.INPUT, kwargs)
            self._forget_outputs()
            self.remember(kinds.OUTPUT, out)

    def _forget_outputs(self) -> None:
        """Forgets the outputs of the previous call: if they still exist, the script keeps them."""
        for _ in range(len(self._inputs)):
            entry = self._inputs.popleft()
            if entry[0] != kinds.OUTPUT:
                self._inputs.append(entry)

    def remember(self, kind: int, values: Any) -> None:
        """Remembers the tensors among values."""
        kept = values if type(values) is tuple else (values,)
        plain = self._plain
        for value in kept:
            if type(value) is not plain:
                break
        else:
            # Most models receive and return plain tensors, read without quiet()'s context if no mode could notice.
            if not self._modes():
                for value in kept:
                    self._tensor(kind, value)
                return
        self._remember(kind, values)

    @quiet
    def _remember(self, kind: int, values: Any) -> None:
        self._look(kind, values, 0)

    def _look(self, kind: int, value: Any, depth: int) -> None:
        if type(value) in _CONTAINERS:
            if depth <= _DEPTH and len(value) <= _MOST:
                inner: Iterable[Any] = value.values() if type(value) is dict else value
                for each in inner:
                    self._look(kind, each, depth + 1)
        elif issubclass(type(value), recorder.torch.Tensor):
            self._tensor(kind, value)
        elif depth <= 1 and any("__dataclass_fields__" in class_dict(cls) for cls in type(value).__mro__):
            self._look(kind, fields(value) or {}, _DEPTH)

    def _tensor(self, kind: int, tensor: Any) -> None:
        try:
            if not tensor.is_cuda:
                return
            if recorder.level < MODULES:
                if type(tensor) is self._plain and tensor.layout is self._strided:  # the common case
                    found: Iterable[tuple[Any, int]] = ((tensor.untyped_storage(), self._dtypes.get(tensor.dtype, 0)),)
                else:
                    found = storages(tensor)
                for storage, dtype in found:
                    size = storage.nbytes()
                    if size:
                        self._inputs.append((kind, storage.data_ptr(), size, dtype, weak(storage)))
            # A parameter that a model returns has no graph, and gets no weak reference, since torch does not swap
            # tensors that have one.
            if kind == kinds.OUTPUT and tensor.requires_grad and not tensor.is_leaf:
                self._outputs.append(weakref.ref(tensor))
        except (RuntimeError, TypeError) as error:  # a subclass without a storage, or without weak references
            if by_script(error):
                raise

    def records(self) -> list[Record]:
        """Records of the inputs and outputs that still exist."""
        return [(kind, at, size, 0, 0, dtype) for kind, at, size, dtype, ref in list(self._inputs) if not expired(ref)]

    def outputs(self) -> list[Any]:
        """The outputs that still exist."""
        return [tensor for tensor in (ref() for ref in list(self._outputs)) if tensor is not None]

    def _step_ended(self, _number: int) -> None:
        """Forgets everything, since the next step has its own tensors."""
        self._inputs.clear()
        self._outputs.clear()


step_io = recorder.part(StepIO)
