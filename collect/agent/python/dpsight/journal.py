"""The two files of a recording process. Marks are records in a shared memory map, so written marks survive SIGKILL
without a flush. Frames are appended as a whole, each with its checksum."""

from __future__ import annotations

import errno
import json
import mmap
import os
import struct
import threading
import time
import zlib
from typing import Any

from dpsight import kinds
from dpsight.interruptions import uninterrupted
from dpsight.masking import masked

RECORD = 32
# Frames with names and texts of the script's own.
TEXTS = frozenset(
    (
        kinds.FRAME_NAMES,
        kinds.FRAME_MODULES,
        kinds.FRAME_CONFIG,
        kinds.FRAME_METRIC,
        kinds.FRAME_PRIVACY,
        kinds.FRAME_EXCEPTION,
        kinds.FRAME_PREDICTION,
        kinds.FRAME_FAILURE,
        kinds.FRAME_CODE,
        kinds.FRAME_LINES,
    )
)
REQUEST_OFFSET = 12
# Values of the request word: the collector sets REQUESTED, and the agent sets ANSWERING while it drains.
REQUESTED = 1
ANSWERING = 2
_ERROR_OFFSET = 24  # offset of the number of the error that ended the recording
# Segments are allocated ahead of use: in a sparse map a full disk would kill the training with SIGBUS. Each segment
# doubles the file, up to this size of a segment. If there is no room for it, the journal takes a smaller segment.
SEGMENT = (1 << 20) * RECORD
_FIRST = 1 << 20
_LEAST = 1 << 12
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MARKS_HEADER = struct.Struct("<4sHHIIq8x")
_FRAME_HEADER = struct.Struct("<B3xIQ")
_LENGTH = struct.Struct("<Q")
_ERROR = struct.Struct("<I")


class _File:
    """A file of the journal. A script may close every descriptor that it does not know (os.closerange), and open
    its own files under the same numbers. _File leaves the script's files alone, and opens the journal's file
    again."""

    def __init__(self, path: str, flags: int) -> None:
        self._path, self._flags = path, flags | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, self._flags | os.O_CREAT | os.O_EXCL, 0o600)
        self._which = _which(self._descriptor)

    def descriptor(self) -> int:
        """A descriptor of the file. Raises OSError if the file is gone."""
        if _which(self._descriptor) != self._which:
            self._descriptor = os.open(self._path, self._flags)
            if _which(self._descriptor) != self._which:
                raise OSError(errno.ESTALE, "another file has replaced the journal")
        return self._descriptor

    def close(self) -> None:
        """Closes the file, if it is open."""
        if _which(self._descriptor) == self._which:
            os.close(self._descriptor)


def _allocate(descriptor: int, size: int, more: int) -> None:
    """Makes a file of `size` bytes larger by `more` bytes."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, size, more)
    else:
        os.ftruncate(descriptor, size + more)


def _which(descriptor: int) -> tuple[int, int] | None:
    """The identity of the file that is open under a descriptor; None if no file is."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Journal:
    """An open journal of this process."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self.start_ns = time.time_ns()
        # A process id alone would not be unique, since exec keeps it.
        base = os.path.join(os.path.abspath(folder), f"{os.getpid()}-{self.start_ns:x}")
        files: list[_File] = []
        try:
            files.append(_File(base + ".marks", os.O_RDWR))
            files.append(_File(base + ".frames", os.O_WRONLY | os.O_APPEND))
            self._marks, self._frames = files
            self._size = 0
            self.map = self.grow()
            _MARKS_HEADER.pack_into(self.map, 0, b"DPSM", 1, RECORD, os.getpid(), 0, self.start_ns)
            self._write(b"DPSF" + struct.pack("<HH", 1, 0))
        except BaseException:
            for file in files:
                file.close()
            raise
        self._lock = threading.Lock()
        self.written = 0
        self.base = base  # the common part of its two files' paths

    def grow(self) -> mmap.mmap:
        """Adds a segment. grow makes a new map and does not resize the old map, into which another thread may be
        writing."""
        segment, marks = min(SEGMENT, max(_FIRST, self._size)), self._marks.descriptor()
        while True:
            try:
                _allocate(marks, self._size, segment)
                break
            except OSError as error:
                if error.errno not in _FULL or segment <= _LEAST:
                    raise
                segment //= 2
        size = self._size + segment
        self.map = mmap.mmap(marks, size)
        self._size = size
        return self.map

    @property
    def records(self) -> int:
        """The number of records that there is room for."""
        return self._size // RECORD

    def frame(self, kind: int, payload: bytes | bytearray) -> None:
        """Appends a frame."""
        head = bytes((kind, 0, 0, 0))
        length = _LENGTH.pack(len(payload))
        crc = zlib.crc32(payload, zlib.crc32(length, zlib.crc32(head)))
        with uninterrupted, self._lock:  # a reader could not find the frames after half a frame
            self._write(_FRAME_HEADER.pack(kind, crc, len(payload)), payload)
            self.written += 1

    def say_failed(self, number: int) -> None:
        """Notes in the map the number of the error that ends recording. On a full disk there would be no room for a
        frame."""
        _ERROR.pack_into(self.map, _ERROR_OFFSET, number)

    def busy(self) -> bool:
        """Whether a frame is being written."""
        return self._lock.locked()

    def json(self, kind: int, value: Any) -> None:
        """Appends a frame of JSON, with secrets masked if it contains words of the script. NaN, which JSON lacks,
        becomes null.

        The agent's own words ("native", "step") stay: a secret may happen to be one of them.
        """
        if kind in TEXTS:
            value = masked(value)
        elif kind == kinds.FRAME_ENVIRONMENT:
            value = {**value, "variables": masked(value.get("variables"))}
        self.frame(kind, json.dumps(_finite(value), separators=(",", ":"), ensure_ascii=False, default=str).encode())

    def _write(self, *parts: bytes | bytearray) -> None:
        todo = [memoryview(p) for p in parts if len(p)]
        frames = self._frames.descriptor()
        while todo:
            n = os.writev(frames, todo) if hasattr(os, "writev") else os.write(frames, todo[0])
            while todo and n >= len(todo[0]):
                n -= len(todo.pop(0))
            if n:
                todo[0] = todo[0][n:]

    def abandon(self) -> None:
        """Closes, in a forked child, the inherited journal, which belongs to the parent."""
        for file in (self._marks, self._frames):
            file.close()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return value
