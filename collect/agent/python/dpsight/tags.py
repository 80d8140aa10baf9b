"""Tags: which tensor lies at which address at which mark. A tag says what was seen, and ingest what it is called."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from dpsight import kinds
from dpsight.marks import flush_names, frame, mark, tag_name
from dpsight.state import state
from dpsight.tensors import addresses, inside, quiet

_TAG = struct.Struct("<IBB2xQQII")
_FLUSH = 64 << 10
_buffer = bytearray()

# kind, address, bytes, number of the name, number of the module
Record = tuple[int, int, int, int, int]


def emit(records: Iterable[Record], untag: bool = False) -> int:
    """Writes tags under one mark of their own, and returns its number."""
    records = list(records)
    if not records:
        return 0
    k = mark(kinds.TAGS, 0, len(records))
    if not k:
        return 0
    op = 2 if untag else 1
    for kind, address, size, name, module in records:
        _buffer.extend(_TAG.pack(k, op, kind, address, size, name, module))
    if len(_buffer) >= _FLUSH:
        flush()
    return k


def of(kind: int, tensor: Any, name: int = 0, module: int = 0) -> list[Record]:
    """The records of one tensor."""
    return [(kind, address, size, name, module) for address, size in addresses(tensor)]


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
    global _buffer
    if _buffer:
        flush_names()
        full, _buffer = _buffer, bytearray()
        frame(kinds.FRAME_TAGS, full)


def after_fork() -> None:
    """The parent writes its own."""
    _buffer.clear()
