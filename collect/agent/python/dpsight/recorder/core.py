"""The recorder of this process: every hook reports to it. The recorder owns the journal and the level (how much is
recorded). The recorder decides what happens after a hook has failed, and the state in which a forked child begins.

Marks record what the training was doing, and are numbered. Each mark's number is also set as the allocator's metadata,
so every allocation has the number of the last mark of its thread. So marks and allocations can be joined without a
clock.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dpsight import kinds
from dpsight.interruptions import by_script, uninterrupted
from dpsight.journal import ANSWERING, REQUEST_OFFSET, REQUESTED, Journal
from dpsight.masking import mask
from dpsight.recorder import events
from dpsight.recorder.settings import Settings

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

# How much is recorded. Each level includes the levels below it.
SILENT = 0  # nothing
COUNTERS = 1  # updates and steps' ends, if one thread trains in steps without phases (unphased_steps.py)
PHASES = 2  # forward, backward, optimizers, zero_grad: bare steps
MODULES = 3  # also the calls of modules, forward and backward
TAGS = 4  # also the addresses of tensors, which needs CUDA

_pack = struct.Struct("<IHBBqQQ").pack_into
_now = time.time_ns
_ident = threading.get_ident
# Before a journal is open, mark numbers start above every limit: a thread that takes a number then, and compares it
# with the limit only after another thread has opened the journal, must not overwrite the first marks.
_UNOPENED = 1 << 40
_LONGEST = 500  # characters of an error that are recorded
_TAKEN_OUT = "the agent removed it and continues"


class Recorder:
    """Writes marks and frames. A recorder's attributes are plain, since hooks read them millions of times."""

    __slots__ = (
        "_count",
        "_failures",
        "_failures_written",
        "_limit",
        "_lock",
        "_map",
        "_names",
        "_on_request",
        "_once",
        "_parts",
        "_reported",
        "_set_metadata",
        "_texts",
        "_threads",
        "_unwritten_names",
        "cuda",
        "forks",
        "journal",
        "level",
        "out",
        "pid",
        "settings",
        "tagging",
        "torch",
        "unphased_thread",
    )

    def __init__(self) -> None:
        self.settings = Settings(os.environ)
        self.torch: Any = None
        self.forks = 0
        self._lock = threading.RLock()  # belongs to the process, and survives starting over
        self._parts: list[Any] = []
        self._once: set[str] = set()  # actions of this process that cannot be undone
        self._on_request: list[Callable[[], bool]] = []
        self._reported: set[str] = set()
        self.out: set[str] = set()  # names of hooks that have failed
        self._failures: list[dict[str, Any]] = []  # failures of hooks
        self._begin()

    def _begin(self) -> None:
        """Sets the state that belongs to one process."""
        self.pid = os.getpid()
        self.cuda = False  # whether CUDA is initialised
        self.tagging = not self.settings.bare  # whether tags are possible
        self.level = PHASES if self.settings.bare else MODULES
        # The training thread at level COUNTERS, else 0. At that level, other threads are recorded as at PHASES.
        self.unphased_thread = 0
        self.journal: Journal | None = None
        self._failures_written = 0
        self._map: Any = None
        self._limit = 0  # number of marks for which there is room; 0 = no journal is open
        self._count = itertools.count(_UNOPENED).__next__
        self._threads: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._texts: list[str] = [""]  # names by number
        self._unwritten_names: list[tuple[int, str]] = []
        # torch's function, once CUDA is initialised: calling it before would initialise CUDA.
        self._set_metadata: Callable[[str], None] | None = None

    # The level.

    def set_level(self, level: int, unphased_thread: int = 0) -> None:
        """Sets the level from now on, as far as this process can record it."""
        with self._lock:  # another thread's failure may change it meanwhile
            if self.level == SILENT:
                return
            if level >= MODULES:
                level = PHASES if not self.tagging else TAGS if self.cuda else MODULES
            self.unphased_thread = unphased_thread
            self.level = level

    def without_phases(self) -> bool:
        """Whether this thread skips its marks: it is the training thread, in a step without phases."""
        return self.unphased_thread == _ident()

    def cuda_starts(self, tagging: bool) -> None:
        """Called when CUDA is initialised. tagging: whether the allocator's events tell which block is which."""
        self.cuda = True
        self.tagging = self.tagging and tagging
        self.set_level(self.level, self.unphased_thread)

    def silence(self) -> None:
        """Ends recording: marks no longer have room, and allocations get no mark's number."""
        self._mute()
        events.silenced.tell()

    def _mute(self) -> None:
        with self._lock:
            self.level = SILENT
            self.unphased_thread = 0
            self._limit = 0
            self._set_metadata = None

    def installs_into(self, torch: Any) -> None:
        """Sets the torch that is recorded."""
        self.torch = torch

    def first(self, what: str) -> bool:
        """Whether this process does something for the first time. first is for actions that cannot be undone."""
        if what in self._once:
            return False
        self._once.add(what)
        return True

    def begin_anew(self, settings: Settings | None) -> None:
        """Starts over: from now on this process is recorded as if it had just begun, into another journal. settings =
        None ends recording, and nothing recorded so far is kept."""
        with uninterrupted, self._lock:
            journal = self.journal
            self.settings = settings or Settings({})
            for seen in (self.out, self._reported, self._failures):
                seen.clear()
            self._begin()
            if settings is None:
                self._on_request.clear()
                self._mute()
            if journal is not None:
                journal.abandon()
            self._renew_parts()

    # Failures.

    def hook_failed(self, what: str, error: BaseException, opens: tuple[int, ...] = (), then: str = _TAKEN_OUT) -> None:
        """Removes a failed hook, and all others guarded by its name. All other hooks continue. The failure is reported
        once, on stderr and in the journal. opens: the kinds of spans that the hook would have closed. then: the
        consequence, in words."""
        if by_script(error):
            raise error
        with uninterrupted, self._lock:  # hooks of several threads may fail at the same time
            if what in self.out:
                return
            self.out.add(what)
            self._say(what, then, error)
            self._failures.append(self._failure(what, error, fatal=False))
            if self.journal is not None:
                self._write_failures()
        if opens:
            events.hook_failed.tell(opens)

    def failed(self, what: str, error: BaseException) -> None:
        """Reports, once, an error of the agent that makes recording impossible, and ends recording."""
        if by_script(error):
            raise error
        if self.journal is not None and self.level != SILENT:
            with contextlib.suppress(Exception):  # the journal itself may have failed
                if isinstance(error, OSError) and error.errno:
                    self.journal.say_failed(error.errno)
                self.journal.json(kinds.FRAME_FAILURE, self._failure(what, error, fatal=True))
        with self._lock:
            self.tagging = False
        self.silence()
        self._say(what, "the agent stopped recording", error)

    def _failure(self, what: str, error: BaseException, fatal: bool) -> dict[str, Any]:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return {"hook": what, "error": text[:_LONGEST], "time_ns": _now(), "fatal": fatal}

    def _write_failures(self) -> None:
        """Writes failures that were not written yet. A forked child's journal also has its parent's failures."""
        while self._failures_written < len(self._failures):
            self._failures_written += 1
            self.frame(kinds.FRAME_FAILURE, self._failures[self._failures_written - 1])

    def spared(self, what: str, error: BaseException) -> None:
        """Reports, once, a failure that does not affect the rest of recording."""
        if by_script(error):
            raise error
        self._say(what, "the agent continues without it", error)

    def _say(self, what: str, then: str, error: BaseException) -> None:
        if what not in self._reported:
            self._reported.add(what)
            line = error.__traceback__.tb_lineno if error.__traceback__ else 0
            sys.stderr.write(f"dpsight: {what} failed, {then}: {type(error).__name__}: {error} (line {line})\n")

    # Marks.

    def mark(self, kind: int, flags: int = 0, a: int = 0, b: int = 0) -> int:
        """Writes a mark and returns its number, or 0 if nothing is recorded."""
        k = self._count()
        if k >= self._limit:
            return self._grow(kind, flags, a, b, k)
        try:
            thread = self._threads[_ident()]
        except KeyError:
            thread = self._thread()
        _pack(self._map, k << 5, k, thread, kind, flags, _now(), a, b)
        set_metadata = self._set_metadata  # another thread may reset it meanwhile
        if set_metadata is not None:
            set_metadata(str(k))
        if self._map[REQUEST_OFFSET] == REQUESTED:
            self._answer()
        return k

    def _thread(self) -> int:
        """Returns the number of a thread that has made no mark yet."""
        with self._lock:
            return self._threads.setdefault(_ident(), len(self._threads) & 0xFFFF)

    def _grow(self, kind: int, flags: int, a: int, b: int, k: int) -> int:
        """The slow part of mark(): opens the journal, or adds a segment to it."""
        if self.level == SILENT:
            return 0
        with uninterrupted, self._lock:
            if self.level == SILENT:  # another thread's failure has ended recording meanwhile
                return 0
            try:
                journal = self.journal
                if k >= _UNOPENED or journal is None:
                    return self.mark(kind, flags, a, b) if self.open_journal() else 0
                while k >= journal.records:
                    self._map = journal.grow()
                self._limit = journal.records
            except OSError as error:
                self.failed("writing marks", error)
                return 0
        _pack(self._map, k << 5, k, self._thread(), kind, flags, _now(), a, b)
        set_metadata = self._set_metadata
        if set_metadata is not None:
            set_metadata(str(k))
        return k

    def replace_metadata(self, old: Callable[[str], None], new: Callable[[str], None]) -> None:
        """Replaces the function that marks call, if it is still the old one."""
        with self._lock:
            if self._set_metadata is old:
                self._set_metadata = new

    def threads(self) -> Iterable[int]:
        """The identities of the threads that have made marks."""
        return self._threads

    def set_metadata(self, function: Callable[[str], None] | None) -> None:
        """Sets the function that puts a mark's number into the allocator's metadata; None turns that off."""
        with self._lock:
            self._set_metadata = function if self.level != SILENT else None

    # The journal.

    def open_journal(self) -> bool:
        """Opens the journal at the first mark, so that launchers, compile workers and tools that only import torch have
        none."""
        with uninterrupted, self._lock:
            if self.journal is not None:
                return self.level != SILENT
            loads_data = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
            spool = self.settings.spool
            if self.level == SILENT or not spool or (loads_data is not None and loads_data() is not None):
                self.silence()
                return False
            try:
                self.journal = journal = Journal(spool)
                journal.json(kinds.FRAME_PROCESS, self._process(journal))
            except OSError as error:
                self.journal = None
                self.failed("opening the journal", error)
                return False
            self._map, self._limit, self._count = journal.map, journal.records, itertools.count(1).__next__
            self.mark(kinds.START)
            self._write_failures()
            events.journal_opened.tell()
            return True

    def _process(self, journal: Journal) -> dict[str, Any]:
        def launcher(name: str) -> int | None:
            text = os.environ.get(name, "")
            return int(text) if text.isdecimal() else None

        bare = self.settings.bare
        return {
            "pid": os.getpid(),
            "ppid": os.getppid(),
            "start_ns": journal.start_ns,
            "rank": launcher("RANK"),
            "local_rank": launcher("LOCAL_RANK"),
            "world_size": launcher("WORLD_SIZE"),
            "mode": "bare" if bare else "full",
            "source": self.settings.source,
            "python": sys.version.split()[0],
            "torch": str(self.torch.__version__) if self.torch is not None else "",
            "forked": self.forks,
            "warmup": self.settings.warmup,
            "module_times": not bare,
        }

    def frame(self, kind: int, value: Any) -> None:
        """Writes a frame: bytes as they are, other values as JSON. frame opens the journal if necessary."""
        if (self.journal is None and not self.open_journal()) or self.level == SILENT or self.journal is None:
            return
        try:
            if isinstance(value, (bytes, bytearray)):
                self.journal.frame(kind, value)
            else:
                self.journal.json(kind, value)
        except OSError as error:
            self.failed("writing a frame", error)

    # Names.

    def name(self, text: str) -> int:
        """Returns the number of a name and writes the name at once, since a mark without its name says little."""
        number = self.tag_name(text)
        if self._unwritten_names:
            self.write_names()
        return number

    def tag_name(self, text: str) -> int:
        """Returns the number of a name for tags. The name is written before the tags that use it."""
        number = self._names.get(text)
        if number is None:
            written = str(text)  # a script may use a number as a mark's name
            with uninterrupted, self._lock:
                number = self._names[text] = len(self._texts)
                self._texts.append(written)
                self._unwritten_names.append((number, mask(written)))
        return number

    def text(self, number: int) -> str:
        """Returns the name with this number."""
        return self._texts[number]

    def write_names(self) -> None:
        """Writes the names that are in no frame yet."""
        with uninterrupted, self._lock:
            names, self._unwritten_names = self._unwritten_names, []
            if names:
                self.frame(kinds.FRAME_NAMES, {"names": names})

    # The collector's requests for a drain.

    def on_request(self, callback: Callable[[], bool]) -> None:
        """Registers a callback for drains that the collector requests. callback returns whether it could drain."""
        self._on_request.append(callback)

    def _answer(self) -> None:
        """Clears the request word, but only when the drain is on disk: the collector's next signal may end this
        process."""
        word = self._map
        asked = word[REQUEST_OFFSET]
        word[REQUEST_OFFSET] = ANSWERING  # the drain's own marks must not answer the request again
        left = 0
        try:
            for callback in self._on_request:
                if not callback():
                    left = asked  # this is within another drain, not yet on disk: the mark after that one answers
        finally:
            word[REQUEST_OFFSET] = left

    # Forked children.

    def part(self, make: Callable[[], _T]) -> _T:
        """Creates an object with state of this process. A forked child gets a new object. If the class has abandon(),
        the child first calls it on the inherited object, to release what belongs to the parent."""
        made = make()
        self._parts.append(made)
        return made

    def after_fork(self) -> None:
        """Begins again in a forked child. If its parent had initialised CUDA, the child cannot use it and stays
        silent."""
        silent = self.cuda or self.level == SILENT or self.settings.alone
        uninterrupted.forget()
        if self.journal is not None:
            self.journal.abandon()
        self.forks += 1
        self._lock = threading.RLock()  # in the parent, a thread that the child lacks may hold it
        self._begin()
        if silent:
            self._mute()  # reports nothing: what the parent turned on, also in torch, belongs to the parent
        self._renew_parts()

    def _renew_parts(self) -> None:
        for part in self._parts:
            if hasattr(part, "abandon"):
                part.abandon()
            part.__init__()  # all other code refers to this object


recorder = Recorder()


def _listener_failed(listener: Callable[..., Any], error: Exception) -> None:
    module, name = listener.__module__.removeprefix("dpsight."), listener.__qualname__.replace(".<locals>.<lambda>", "")
    recorder.hook_failed(f"{module}.{name}", error)


events.Event.failed = staticmethod(_listener_failed)


def guarded(what: str, fatal: bool = False, otherwise: Any = None, opens: tuple[int, ...] = ()) -> Callable[[_F], _F]:
    """Decorates a hook, so that its failure cannot break the script. If a hook fails, the recorder reports that once,
    and removes everything guarded by the same name: those functions then return otherwise. opens: the kinds of spans
    that the hook opens and closes. fatal: recording ends if the hook fails, since it is impossible without it."""
    out = recorder.out

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def guard(*args: Any, **kwargs: Any) -> Any:
            if what in out:
                if opens:  # it may have failed on another thread
                    events.hook_failed.tell(opens)
                return otherwise
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if fatal:
                    recorder.failed(what, error)
                else:
                    recorder.hook_failed(what, error, opens)
                return otherwise

        return guard  # type: ignore[return-value]

    return decorate
