"""Tags: which tensor lies at which address at which mark. A tag says what was seen, and ingest what it is called."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from dpsight import kinds
from dpsight.interruptions import by_script, uninterrupted
from dpsight.marks import flush_names, frame, mark, tag_name
from dpsight.state import state
from dpsight.tensors import addresses, inside, plain_types, quiet
from dpsight.torch_compat import Weak, expired, weak

_TAG = struct.Struct("<IBBBxQQII")
_FLUSH = 64 << 10
# What is not written yet. Several threads may tag: each adds and takes in one go, without a lock, which would stay held
# where a script's signal handler raises.
_buffer: deque[bytes] = deque()
_bytes = 0  # in it, about

# kind, address, bytes, number of the name, number of the module, number of the dtype
Record = tuple[int, int, int, int, int, int]


# Who owns a tensor beyond autograd: the script that keeps it, too, adds nothing.
_OWNED = {
    kinds.PARAMETER,
    kinds.BUFFER,
    kinds.GRADIENT,
    kinds.OPTIMIZER_STATE,
    kinds.GRAD_SAMPLE,
    kinds.NORM_SAMPLE,
    kinds.SUMMED_GRADIENT,
    kinds.NOISE,
    kinds.INPUT,
    kinds.OUTPUT,
    kinds.USER,
}
owned: set[int] = set()  # addresses of what was tagged as something of its own since the step began


def emit(records: Iterable[Record], untag: bool = False) -> int:
    """Writes tags under one mark of their own, and returns its number."""
    global _bytes
    records = list(records)
    if not records:
        return 0
    k = mark(kinds.TAGS, 0, len(records))
    if not k:
        return 0
    op = 2 if untag else 1
    packed = b"".join(
        _TAG.pack(k, op, kind, dtype, address, size, name, module)
        for kind, address, size, name, module, dtype in records
    )
    owned.update(record[1] for record in records if record[0] in _OWNED)
    _buffer.append(packed)
    _bytes += len(packed)
    if _bytes >= _FLUSH:
        flush()
    return k


def of(kind: int, tensor: Any, name: int = 0, module: int = 0) -> list[Record]:
    """The records of one tensor."""
    return [(kind, address, size, name, module, dtype) for address, size, dtype in addresses(tensor)]


# What lives from step to step: (id, kind) → where its data begin, a weak reference to its storage, and how often it was
# tagged there.
_lasting: dict[tuple[int, int], tuple[int, Weak | None, int]] = {}
_ENOUGH = 2  # beside a first allocation of its size a tag may be ambiguous; the next is not


def settled(kind: int, tensor: Any) -> bool:
    """Whether tags have said where a tensor lies that lives from step to step, and it lies there still: a tag holds
    for the whole life of a block. Call it with __torch_function__ off."""
    found = _lasting.get((id(tensor), kind))
    if found is None or found[2] < _ENOUGH or expired(found[1]):
        return False
    try:
        return tensor.data_ptr() == found[0]
    except RuntimeError as error:
        if by_script(error):
            raise
        return False  # another tensor in its place, without storage


def lasting(kind: int, tensor: Any, name: int) -> list[Record]:
    """The records of a tensor that lives from step to step. Call it with __torch_function__ off, if not settled."""
    records = of(kind, tensor, name)
    if len(records) == 1 and type(tensor) in plain_types():
        key, pointer = (id(tensor), kind), tensor.data_ptr()
        known, ref, times = _lasting.get(key, (0, None, 0))
        if expired(ref) or known != pointer:
            ref, times = weak(tensor.untyped_storage()), 0
        _lasting[key] = (pointer, ref, times + 1)
    return records


def settled_at() -> set[int]:
    """Where the tensors lie that live from step to step, and that tags have settled."""
    return {pointer for pointer, _, _ in list(_lasting.values())}


def forget() -> None:
    """What lives from step to step is tagged anew."""
    _lasting.clear()


@quiet
def within(kind: int, value: Any, name: int = 0, module: int = 0) -> list[Record]:
    """The records of all tensors inside a structure."""
    out: list[Record] = []
    for tensor in inside(value):
        out += of(kind, tensor, name, module)
    return out


@quiet
def user(tensor: Any, category: str, name: str) -> None:
    """dpsight.tag(): the module's place holds the category."""
    if state.instrumented and state.cuda:
        emit(within(kinds.USER, tensor, tag_name(name), tag_name(category)))


def flush() -> None:
    """Writes what is buffered: names first, or a kill in between would leave tags without them."""
    global _bytes
    with uninterrupted:
        _bytes = 0
        full = b"".join(_taken())
        if full:
            flush_names()
            frame(kinds.FRAME_TAGS, full)


def _taken() -> Iterator[bytes]:
    while True:
        try:
            yield _buffer.popleft()
        except IndexError:
            return


def after_fork() -> None:
    """The parent writes its own."""
    global _bytes
    _bytes = 0
    _buffer.clear()
    _lasting.clear()
    owned.clear()
