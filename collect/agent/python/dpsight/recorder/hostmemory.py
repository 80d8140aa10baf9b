"""The memory of this process on the host."""

from __future__ import annotations

import contextlib
import os
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Resident:
    """What the kernel says of this process. It keeps the file open: to open it would take longer than to read."""

    __slots__ = ("_file",)

    def __init__(self) -> None:
        self._file = -1
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def bytes(self) -> int | None:
        """The resident memory; None where nobody knows."""
        try:
            return int(os.pread(self._file, 128, 0).split()[1]) * _PAGE
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Closes the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def pinned_bytes(torch: Any) -> int | None:
    """The page-locked memory that torch has, in use or cached; None where this torch does not count it."""
    stats = getattr(torch.cuda, "host_memory_stats_as_nested_dict", dict)()
    return (stats.get("allocated_bytes") or {}).get("current") if stats else None
