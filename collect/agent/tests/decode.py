"""Reads the agent's journals for the agent's Python tests."""

from __future__ import annotations

import json
import pickle
import struct
import sys
import zlib
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from dpsight import kinds  # noqa: E402

sys.path.pop(0)

NAMES = {
    value: name
    for name, value in vars(kinds).items()
    if isinstance(value, int) and (name.endswith(("_BEGIN", "_END")) or 40 <= value <= 57)
}
MODES = {
    kinds.WARMUP: "warm-up",
    kinds.INSTRUMENTED: "instrumented",
    kinds.RECORDING: "recorded",
    kinds.UNPHASED: "unphased",
}


TAG, UNTAG = 1, 2


class Mark(NamedTuple):
    k: int
    thread: int
    kind: int
    flags: int
    time_ns: int
    a: int
    b: int


class Tag(NamedTuple):
    k: int
    ends: bool  # true if it ends an earlier tag
    kind: int
    address: int
    bytes: int
    name: str
    module: int
    dtype: str


class Journal:
    """One process's journal."""

    def __init__(self, marks: Path) -> None:
        self.marks = read_marks(marks.read_bytes())
        frames = marks.with_suffix(".frames")
        self.frames, self.torn = read_frames(frames.read_bytes())
        self.names: dict[int, str] = {}
        for value in self.json(kinds.FRAME_NAMES):
            self.names.update(dict(value["names"]))
        self.modules = {m["id"]: m for f in self.json(kinds.FRAME_MODULES) for m in f["modules"]}
        self.process = self.json(kinds.FRAME_PROCESS)[0]
        self.tags = [t for p in self.payloads(kinds.FRAME_TAGS) for t in read_tags(p, self.names)]

    def payloads(self, kind: int) -> list[bytes]:
        return [p for t, p in self.frames if t == kind]

    def json(self, kind: int) -> list[Any]:
        return [json.loads(p) for p in self.payloads(kind)]

    def chunks(self) -> list[tuple[dict[str, Any] | None, dict[str, Any]]]:
        """Returns the allocator's snapshot with the events, if any, and the checkpoint of each drain."""
        out, snapshot = [], None
        for kind, payload in self.frames:
            if kind == kinds.FRAME_ALLOCATOR:
                snapshot = pickle.loads(payload)
            elif kind == kinds.FRAME_CHECKPOINT:
                out.append((snapshot, json.loads(payload)))
                snapshot = None
        return out

    def count(self, kind: int, without: int = 0) -> int:
        return sum(m.kind == kind and not m.flags & without for m in self.marks)

    def ends(self) -> list[int]:
        """Returns the numbers of the marks with which steps end."""
        return [
            m.k for m in self.marks if m.kind == kinds.STEP_END or (m.kind == kinds.UPDATED and m.flags & kinds.ENDS)
        ]

    def modes(self) -> list[str]:
        """Returns the modes of recording that the journal has, in words; "bare" stands for no flag."""
        modes = [m.flags for m in self.marks if m.kind == kinds.MODE]
        return [" ".join(word for flag, word in MODES.items() if flags & flag) or "bare" for flags in modes]

    def intervals(self) -> list[tuple[int, int, int]]:
        """Returns GPU times: the marks at the begin and the end, and the nanoseconds between them."""
        return [t for p in self.payloads(kinds.FRAME_TIMES) for t in struct.iter_unpack("<IIq", p)]

    def stamped(self) -> set[int]:
        """Returns the numbers of the marks that have a GPU time."""
        return {k for begin, end, _ in self.intervals() for k in (begin, end)}

    def unclosed(self) -> list[Mark]:
        """Returns, for each thread, marks that open a span which is not closed in order, or that close a span which is
        not open. unclosed leaves out modules in backward, which end when backward enters another module or ends."""
        open_: dict[int, list[Mark]] = {}
        wrong = []
        for m in self.marks:
            stack = open_.setdefault(m.thread, [])
            if m.kind > kinds.DRAIN_END or m.kind in (kinds.MODULE_BACKWARD_BEGIN, kinds.MODULE_BACKWARD_END):
                continue
            if m.kind % 2:  # a kind that begins a span is odd, and the next number ends it
                stack.append(m)
            elif not stack or stack.pop().kind != m.kind - 1:
                wrong.append(m)
        return wrong + [m for stack in open_.values() for m in stack]

    def line(self, skip: frozenset[int] = frozenset()) -> str:
        return " ".join(f"{NAMES.get(m.kind, m.kind)}" for m in self.marks if m.kind not in skip)


def read_marks(data: bytes) -> list[Mark]:
    magic, version, size, _pid, _request, _start = struct.unpack_from("<4sHHIIq", data)
    assert (magic, version, size) == (b"DPSM", 1, 32), (magic, version, size)
    out = []
    for k in range(1, len(data) // 32):
        record = struct.unpack_from("<IHBBqQQ", data, 32 * k)
        if record[0] == k:
            out.append(Mark(*record))
        elif out and k > out[-1].k + 64:
            break
    return out


def read_frames(data: bytes) -> tuple[list[tuple[int, bytes]], bool]:
    assert data[:4] == b"DPSF", data[:4]
    out, at = [], 8
    while at < len(data):
        if at + 16 > len(data):
            return out, True
        kind, crc, length = struct.unpack_from("<B3xIQ", data, at)
        payload = data[at + 16 : at + 16 + length]
        if len(payload) < length:
            return out, True
        assert zlib.crc32(payload, zlib.crc32(data[at + 8 : at + 16], zlib.crc32(data[at : at + 4]))) == crc
        out.append((kind, payload))
        at += 16 + length
    return out, False


def read_tags(payload: bytes, names: dict[int, str]) -> list[Tag]:
    out = []
    for k, op, kind, dtype, address, size, name, module in struct.iter_unpack("<IBBBxQQII", payload):
        assert op in (TAG, UNTAG), op
        called = names.get(name, "") if name else ""
        made_of = kinds.DTYPES[dtype - 1] if dtype else ""
        out.append(Tag(k, op == UNTAG, kind, address, size, called, module, made_of))
    return out


def journals(folder: Path) -> list[Journal]:
    return [Journal(p) for p in sorted(folder.glob("*.marks"))]


if __name__ == "__main__":
    for j in journals(Path(sys.argv[1])):
        print(j.process["pid"], len(j.marks), "marks", len(j.tags), "tags", [c[1]["reason"] for c in j.chunks()])
        print(j.line())
