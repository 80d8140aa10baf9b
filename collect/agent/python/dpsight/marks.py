"""Marks: what the training was doing, counted. Each mark's number is also set as the allocator's metadata, so that
every allocation carries the number of the last mark in its thread. No clock is needed to join the two."""

from __future__ import annotations

import itertools
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.interruptions import uninterrupted
from dpsight.journal import ANSWERING, REQUEST_OFFSET, REQUESTED, Journal
from dpsight.masking import mask
from dpsight.state import failed, state

_pack = struct.Struct("<IHBBqQQ").pack_into
_now = time.time_ns
_ident = threading.get_ident
_lock = threading.RLock()

journal: Journal | None = None
_map: Any = None
_limit = 0  # marks that there is room for; 0 = no journal is open
# Until a journal is open, numbers are too high for any: a thread that took one then, and looks at the limit only after
# another has opened the journal, must not write over the first marks.
_UNOPENED = 1 << 40
_count = itertools.count(_UNOPENED).__next__
_threads: dict[int, int] = {}
_names: dict[str, int] = {}
_texts: list[str] = [""]  # by number
_pending_names: list[tuple[int, str]] = []
_on_open: list[Callable[[], None]] = []
_on_request: list[Callable[[], bool]] = []
last = 0  # the number of a recent mark


# torch's, once CUDA is initialised: a call before would initialise it.
_set_metadata: Callable[[str], None] | None = None


def mark(kind: int, flags: int = 0, a: int = 0, b: int = 0) -> int:
    """Writes a mark and returns its number, 0 if nothing is recorded."""
    k = _count()
    if k >= _limit:
        return _grow(kind, flags, a, b, k)
    try:
        thread = _threads[_ident()]
    except KeyError:
        thread = _thread()
    _pack(_map, k << 5, k, thread, kind, flags, _now(), a, b)
    set_metadata = _set_metadata  # another thread may take it away meanwhile
    if set_metadata is not None:
        set_metadata(str(k))
    if _map[REQUEST_OFFSET] == REQUESTED:
        _answer()
    return k


def _thread() -> int:
    """The number of a thread that has made no mark yet."""
    with _lock:
        return _threads.setdefault(_ident(), len(_threads) & 0xFFFF)


def _grow(kind: int, flags: int, a: int, b: int, k: int) -> int:
    """The slow road of mark: opens the journal, or adds a segment to it."""
    global _map, _limit
    if state.dead:
        return 0
    with uninterrupted, _lock:
        try:
            if k >= _UNOPENED or journal is None:
                return mark(kind, flags, a, b) if open_journal() else 0
            while k >= journal.records:
                _map = journal.grow()
            _limit = journal.records
        except OSError as error:
            stop()
            failed("writing marks", error)
            return 0
    _pack(_map, k << 5, k, _thread(), kind, flags, _now(), a, b)
    set_metadata = _set_metadata  # another thread may take it away meanwhile
    if set_metadata is not None:
        set_metadata(str(k))
    return k


def open_journal() -> bool:
    """Opens the journal at the first mark: launchers, compile workers and tools that only import torch stay out."""
    global journal, _map, _limit, _count
    with uninterrupted, _lock:
        if journal is not None:
            return not state.dead
        loads_data = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
        if state.dead or not state.spool or (loads_data is not None and loads_data() is not None):
            state.dead = True
            return False
        try:
            journal = Journal(state.spool)
            journal.json(kinds.FRAME_PROCESS, _process(journal))
        except OSError as error:
            journal = None
            failed("opening the journal", error)
            return False
        _map, _limit, _count = journal.map, journal.records, itertools.count(1).__next__
        mark(kinds.START)
        for callback in _on_open:
            callback()
        return True


def _process(j: Journal) -> dict[str, Any]:
    def launcher(name: str) -> int | None:
        text = os.environ.get(name, "")
        return int(text) if text.isdecimal() else None

    return {
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "start_ns": j.start_ns,
        "rank": launcher("RANK"),
        "local_rank": launcher("LOCAL_RANK"),
        "world_size": launcher("WORLD_SIZE"),
        "mode": "bare" if state.bare else "full",
        "source": state.source,
        "python": sys.version.split()[0],
        "torch": str(state.torch.__version__) if state.torch is not None else "",
        "forked": state.forks,
        "warmup": state.warmup,
        "module_times": not state.bare,
    }


def stop() -> None:
    """Ends recording without a word: the files stay as they are."""
    global _limit, _set_metadata
    state.dead = True
    _limit = 0
    _set_metadata = None


def frame(kind: int, value: Any) -> None:
    """Writes a frame: bytes as they are, anything else as JSON. Opens the journal if need be."""
    if (journal is None and not open_journal()) or state.dead or journal is None:
        return
    try:
        if isinstance(value, (bytes, bytearray)):
            journal.frame(kind, value)
        else:
            journal.json(kind, value)
    except OSError as error:
        stop()
        failed("writing a frame", error)


def set_metadata(function: Callable[[str], None] | None) -> None:
    """From here on marks set the allocator's metadata, or no longer do."""
    global _set_metadata
    _set_metadata = function


def name(text: str) -> int:
    """The number of a name, written at once: a mark whose name is lost says little."""
    number = tag_name(text)
    if _pending_names:
        flush_names()
    return number


def tag_name(text: str) -> int:
    """The number of a name for tags, written before the tags that use it."""
    number = _names.get(text)
    if number is None:
        with uninterrupted, _lock:
            number = _names[text] = len(_texts)
            _texts.append(text)
            _pending_names.append((number, mask(text)))
    return number


def text(number: int) -> str:
    """The name with this number."""
    return _texts[number]


def flush_names() -> None:
    """Writes the names that no frame has yet."""
    global _pending_names
    with uninterrupted, _lock:
        names, _pending_names = _pending_names, []
        if names:
            frame(kinds.FRAME_NAMES, {"names": names})


def on_open(callback: Callable[[], None]) -> None:
    """Has callback called whenever a journal was opened."""
    _on_open.append(callback)


def on_request(callback: Callable[[], bool]) -> None:
    """Has callback called when the collector asks for a drain; it says whether it could."""
    _on_request.append(callback)


def _answer() -> None:
    """Clears the word only when the drain is on disk: the collector's next signal may end this process."""
    word = _map
    asked = word[REQUEST_OFFSET]
    word[REQUEST_OFFSET] = ANSWERING  # the drain's own marks must not answer again
    left = 0
    try:
        for callback in _on_request:
            if not callback():
                left = asked  # in the middle of another drain, which is not on disk either: the mark after it answers
    finally:
        word[REQUEST_OFFSET] = left


def after_fork() -> None:
    """The parent's journal is not ours: drop it without writing, and count from 1."""
    global journal, _map, _limit, _count, _lock, _pending_names, _set_metadata
    _lock = threading.RLock()
    if journal is not None:
        journal.abandon()
    journal, _map, _limit = None, None, 0
    _count = itertools.count(_UNOPENED).__next__
    _pending_names = []
    _threads.clear()
    _names.clear()
    del _texts[1:]
    _set_metadata = None
