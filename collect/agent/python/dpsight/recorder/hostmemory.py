"""Records this process's memory on the host: resident memory, and torch's page-locked memory. Host memory is read at
the marks between phases of instrumented steps and at the ends of bare steps, so that growth can be assigned to a phase.
Steps without phases have no reading of their own, and their growth lies between two readings of other steps."""

from __future__ import annotations

import os
import struct
from collections import deque
from typing import Any

from dpsight import kinds
from dpsight.recorder.core import COUNTERS, MODULES, recorder

_NOTE = struct.Struct("<IIqq")  # mark, padding, resident bytes, page-locked bytes (-1 = unknown)
_UNKNOWN = -1
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Resident:
    """Reads the kernel's figures for this process. After the first reading the file stays open, since opening it takes
    longer than reading it."""

    __slots__ = ("_file",)

    def __init__(self) -> None:
        self._file = -1

    def bytes(self) -> int | None:
        """The resident memory, or None if the system does not tell."""
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
    """torch's page-locked memory, in use or cached, or None if this torch does not count it."""
    stats = getattr(torch.cuda, "host_memory_stats_as_nested_dict", dict)()
    return (stats.get("allocated_bytes") or {}).get("current") if stats else None


class HostMemory:
    """The readings that are not written yet."""

    def __init__(self) -> None:
        self._resident = Resident()
        # Several threads may read: each appends, and takes, in one operation that needs no lock.
        self._notes: deque[bytes] = deque()

    def abandon(self) -> None:
        """Drops the open file of the parent, or of a recording that has ended."""
        self._resident.close()

    def phase(self, k: int) -> None:
        """Reads at a mark between phases, but only in instrumented steps: in a bare step the reading would be part of
        its time."""
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
