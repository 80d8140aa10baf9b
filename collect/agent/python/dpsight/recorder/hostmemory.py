"""The memory of this process on the host: resident, and page-locked by torch. It is read at the marks between
phases of instrumented steps and at the ends of bare ones, so that growth has a phase. Steps without phases have
no reading of their own: their growth lies between two others."""

from __future__ import annotations

import os
import struct
from collections import deque
from typing import Any

from dpsight import kinds
from dpsight.recorder.core import COUNTERS, MODULES, recorder

_NOTE = struct.Struct("<IIqq")  # mark, nothing, resident bytes, page-locked bytes (-1 = not known)
_UNKNOWN = -1
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Resident:
    """What the kernel says about this process. From the first reading on it keeps the file open: opening it would
    take longer than reading it."""

    __slots__ = ("_file",)

    def __init__(self) -> None:
        self._file = -1

    def bytes(self) -> int | None:
        """The resident memory; None where nobody knows."""
        try:
            if self._file < 0:
                self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._file, 128, 0).split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return None

    def close(self) -> None:
        """Closes the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def pinned_bytes(torch: Any) -> int | None:
    """The page-locked memory of torch, in use or cached; None if this torch does not count it."""
    stats = getattr(torch.cuda, "host_memory_stats_as_nested_dict", dict)()
    return (stats.get("allocated_bytes") or {}).get("current") if stats else None


class HostMemory:
    """What was read, and is not written yet."""

    def __init__(self) -> None:
        self._resident = Resident()
        # Several threads may read: each adds and takes in one go, without a lock.
        self._notes: deque[bytes] = deque()

    def abandon(self) -> None:
        """What is open is the parent's, or of a recording that has ended."""
        self._resident.close()

    def phase(self, k: int) -> None:
        """Reads at a mark between phases, in instrumented steps: in bare ones it would be in their times."""
        if k and recorder.level >= MODULES:
            self._read(k)

    def step(self, k: int) -> None:
        """Reads at a mark between steps that have phases."""
        if k and recorder.level > COUNTERS:
            self._read(k)

    def _read(self, k: int) -> None:
        resident = self._resident.bytes()
        if resident is not None:
            pinned = pinned_bytes(recorder.torch) if recorder.cuda else None
            self._notes.append(_NOTE.pack(k, 0, resident, _UNKNOWN if pinned is None else pinned))

    def flush(self) -> None:
        """Writes what was read."""
        notes = b"".join(self._notes.popleft() for _ in range(len(self._notes)))
        if notes:
            recorder.frame(kinds.FRAME_HOST, notes)


host_memory = recorder.part(HostMemory)
