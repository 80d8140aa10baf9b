"""Reads where tensors' storages lie, and which tensors are inside a structure, without changing the tensors. The module
keeps no reference: a tensor held for a moment too long would raise the peak that is measured."""

from __future__ import annotations

import collections
import functools
import gc
from collections.abc import Callable, Iterable, Iterator
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, TypeVar

from dpsight import kinds
from dpsight.interruptions import by_script
from dpsight.recorder import recorder
from dpsight.torch_compat import local_tensor, private, sparse_parts

_MAX_DEPTH = 4
MOST_ENTRIES = 1000
"""Larger containers are not looked into: a container that grows with every step belongs neither to a model nor to an
optimizer."""
_F = TypeVar("_F", bound=Callable[..., Any])


def quiet(function: _F) -> _F:
    """Makes a function read tensors without __torch_function__. Subclasses may refuse to give even their address, and a
    mode of the script would see, and slow down, every attribute that is read."""

    @functools.wraps(function)
    def quietly(*args: Any, **kwargs: Any) -> Any:
        with private.DisableTorchFunction():
            return function(*args, **kwargs)

    return quietly  # type: ignore[return-value]


def storages(tensor: Any) -> Iterable[tuple[Any, int]]:
    """The CUDA storages behind a tensor, and their dtypes. There is one storage, except for subclasses that wrap
    several tensors."""
    if type(tensor) in plain_types() and tensor.is_cuda and tensor.layout is recorder.torch.strided:
        if not private.functorch_wraps(tensor):  # the common case, without a generator
            return ((tensor.untyped_storage(), dtype(tensor)),)
    return _inner_storages(tensor)


def _inner_storages(tensor: Any) -> Iterator[tuple[Any, int]]:
    torch = recorder.torch
    kind = type(tensor)
    if private.functorch_wraps(tensor):  # of any type: inside torch.func a plain tensor may be a wrapper
        yield from storages(private.functorch_unwrapped(tensor))
        return
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        inner = local_tensor(tensor)
        if inner is not None:
            yield from storages(inner)
            return
        if hasattr(kind, "__tensor_flatten__"):
            for attribute in tensor.__tensor_flatten__()[0]:
                yield from storages(getattr(tensor, attribute))
            return
    if not tensor.is_cuda:
        return
    if tensor.layout is not torch.strided:
        yield from _sparse(tensor)
        return
    yield tensor.untyped_storage(), dtype(tensor)


def _sparse(tensor: Any) -> Iterator[tuple[Any, int]]:
    torch = recorder.torch
    if tensor.layout is torch.sparse_coo:
        for part in sparse_parts(tensor):
            yield from storages(part)
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        yield from storages(tensor.crow_indices())
        yield from storages(tensor.col_indices())
        yield from storages(tensor.values())


def dtype(tensor: Any) -> int:
    """The number of a tensor's dtype; 0 if kinds.py does not list it."""
    return numbers().get(tensor.dtype, 0)


@functools.cache
def numbers() -> dict[Any, int]:
    """The numbers of the dtypes that this torch has."""
    known = ((getattr(recorder.torch, name, None), n) for n, name in enumerate(kinds.DTYPES, 1))
    return {value: n for value, n in known if value is not None}


def addresses(tensor: Any) -> list[tuple[int, int, int]]:
    """Base address, bytes and dtype of each CUDA storage behind a tensor. Fake and meta tensors have none."""
    try:
        if type(tensor) in plain_types():  # the common case needs no generator
            if not tensor.is_cuda:
                return []
            if tensor.layout is recorder.torch.strided and not private.functorch_wraps(tensor):
                storage = tensor.untyped_storage()
                n = storage.nbytes()
                return [(storage.data_ptr(), n, dtype(tensor))] if n else []
        return [(s.data_ptr(), s.nbytes(), d) for s, d in storages(tensor) if s.nbytes()]
    except RuntimeError as error:  # NotImplementedError is a subclass
        if by_script(error):
            raise
        return []  # a subclass without a storage of its own


def base(tensor: Any, name: str) -> Any:
    """Reads an attribute of torch's own tensor class, even if a subclass of the script defines the same name."""
    return getattr(recorder.torch.Tensor, name).__get__(tensor)


def held(tensor: Any) -> list[tuple[Any, int, int]]:
    """Each CUDA storage behind a tensor, its base address and its bytes. Fake and meta tensors have none. For a
    subclass it is the tensor's own storage, without the tensors that it wraps."""
    try:
        if type(tensor) in plain_types():
            return [(s, s.data_ptr(), s.nbytes()) for s, _ in storages(tensor)]
        if not base(tensor, "is_cuda") or base(tensor, "layout") is not recorder.torch.strided:
            return []
        storage = base(tensor, "untyped_storage")()
        return [(storage, storage.data_ptr(), storage.nbytes())]
    except RuntimeError as error:
        if by_script(error):
            raise
        return []  # a subclass without a storage of its own


@functools.cache
def plain_types() -> tuple[type, ...]:
    """The types of tensors that have a single storage, unless torch.func wraps them."""
    return (recorder.torch.Tensor, recorder.torch.nn.Parameter)


def living() -> list[Any]:
    """All plain tensors that Python knows, on any device. The garbage collector finds what refers to their class in 20
    ms. The returned list keeps the tensors alive."""
    plain = plain_types()
    return [t for t in gc.get_referrers(*plain) if type(t) in plain]


def subclassed() -> list[Any]:
    """All tensors of subclasses that the script or a library defines. torch's own subclasses wrap plain tensors."""
    kinds, todo = set(), [recorder.torch.Tensor]
    while todo:
        for kind in type.__subclasses__(todo.pop()):
            todo.append(kind)
            module = class_dict(kind).get("__module__")
            if type(module) is str and not f"{module}.".startswith("torch."):
                kinds.add(kind)
    return [t for t in gc.get_referrers(*kinds) if type(t) in kinds] if kinds else []


def grad_fn(tensor: Any) -> Any:
    """The node that made a tensor. A view has none, and cannot be used, if another view of its base was changed in
    place. Call it with __torch_function__ turned off."""
    try:
        return base(tensor, "grad_fn")
    except RuntimeError as error:
        if by_script(error):
            raise
        return None


def batched(tensor: Any) -> bool:
    """Whether the tensor is vmap's wrapper for several samples."""
    while private.functorch_wraps(tensor):
        if private.functorch_batched(tensor):
            return True
        tensor = private.functorch_unwrapped(tensor)
    return False


def inside(value: Any, depth: int = 0) -> Iterator[Any]:
    """The tensors inside a structure of tuples, lists, dictionaries and plain objects."""
    try:
        if isinstance(value, recorder.torch.Tensor):
            yield value
            return
    except ReferenceError:
        return  # a weak proxy of a dead object
    if value is None or depth >= _MAX_DEPTH or isinstance(value, (str, bytes, int, float, type)):
        return
    if isinstance(value, dict):
        value = dict.values(value)
    elif not isinstance(value, (tuple, list)):
        if isinstance(value, recorder.torch.nn.Module):
            return  # a module's attributes belong to it, not to the object that refers to it
        value = getattr(value, "__dict__", {}).values() if depth < 2 else ()
    for item in list(value):
        yield from inside(item, depth + 1)


def grad_fns(values: Iterable[Any], objects: bool = False) -> list[Any]:
    """The nodes that made the tensors among values, also those in containers and dataclasses and, if objects is true,
    in attributes of plain objects. grad_fns runs at every call of a module, so it does not look into other arguments,
    such as a configuration or a cache of all layers. Call it with __torch_function__ turned off."""
    plain, found = plain_types(), []
    todo = list(values)
    for _ in range(_MAX_DEPTH + 1):
        inner: list[Any] = []
        for value in todo:
            kind = type(value)
            if kind in _EMPTY:
                continue
            if kind in plain or issubclass(kind, recorder.torch.Tensor):
                node = grad_fn(value)
                if node is not None:
                    found.append(node)
            elif len(inner) < MOST_ENTRIES:
                inner += _parts(value, kind, objects)
        if not inner:
            break
        todo, objects = inner, False
    return found


_EMPTY = frozenset((type(None), bool, int, float, str))


def _parts(value: Any, kind: type, objects: bool) -> Iterable[Any]:
    """The contents of a container, a dataclass or, if objects is true, any object. Calls no method of the script."""
    for container in (dict, tuple, list, collections.deque):
        if issubclass(kind, container):
            if container.__len__(value) > MOST_ENTRIES:
                return ()
            return dict.values(value) if container is dict else container.__iter__(value)
    if collections.UserDict in class_order(kind):  # issubclass would ask its metaclass, which runs the script's code
        objects = True
    dictionaries = map(class_dict, class_order(kind))
    known = next((d["__dataclass_fields__"] for d in dictionaries if "__dataclass_fields__" in d), ())
    if not (known or objects) or issubclass(kind, recorder.torch.nn.Module):
        return ()
    own = fields(value) or {}
    return [*own.values(), *_slots(value, kind, known)] if len(own) <= MOST_ENTRIES else ()


def _slots(value: Any, kind: type, names: Iterable[str]) -> Iterator[Any]:
    """The values in a dataclass's slots."""
    for name in names:
        for cls in class_order(kind):
            slot = class_dict(cls).get(name)
            if type(slot) is MemberDescriptorType:
                try:
                    yield slot.__get__(value)
                except AttributeError:
                    pass  # an empty slot
                break


class_dict = type.__dict__["__dict__"].__get__  # reads a class's dictionary even if its metaclass hides it
class_order = type.__dict__["__mro__"].__get__


def fields(value: Any) -> dict[str, Any] | None:
    """An object's dictionary, read by the interpreter's own descriptor: a class may define a property with that
    name."""
    for cls in class_order(type(value)):
        found = class_dict(cls).get("__dict__")
        if found is not None:
            own = found.__get__(value) if type(found) in (GetSetDescriptorType, MemberDescriptorType) else None
            return own if type(own) is dict else None
    return None


def needs_grad(value: Any) -> bool:
    """Whether some tensor inside value requires grad."""
    torch = recorder.torch
    # Most models return a plain tensor. A plain tensor is read without quiet()'s context if no mode could notice.
    if type(value) is torch.Tensor and not private.torch_function_modes():
        return value.requires_grad
    return _needs_grad(value)


@quiet
def _needs_grad(value: Any) -> bool:
    return any(t.requires_grad for t in inside(value))
