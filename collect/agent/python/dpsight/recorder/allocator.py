"""Records the allocator's own history. Recording starts before the first allocation. Between steps the history is
drained, each time with torch's counters, so that a lost event is noticed."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import time
from _thread import get_ident
from collections.abc import Iterator
from typing import Any, Protocol

from dpsight import kinds
from dpsight.interruptions import uninterrupted
from dpsight.recorder import events
from dpsight.recorder.core import SILENT, guarded, recorder
from dpsight.recorder.counters import Acts, devices, everywhere, none_since
from dpsight.recorder.freeze import freeze_threads
from dpsight.recorder.timing import stamps
from dpsight.torch_compat import private

_ALWAYS = 12  # number of first steps that are each drained, so that a run that dies early loses little
# Between steps the agent only reads the clock, since reading the counters would take a tenth of a millisecond. In a
# long step, check() reads the counters.
_EVERY_NS = 250_000_000
# The time after which events are drained without a step's end. A waiting event takes 0.8 kB, and a drain makes a
# dictionary of each.
_LONGEST_NS = 3_000_000_000
_MOST = 100_000
_LOOK_EVERY = 64  # outermost calls between two looks at the clock and at the counter
# How long the agent looks for a moment in which no thread allocates.
_PATIENCE_NS = 1_000_000_000
_QUIET_NS = 5_000_000
_LOOKS = 3  # looks at the counters, a few microseconds apart, that must find no change
_LISTED = 8  # failures outside windows that each get a list of blocks; then every power of two

# Reasons of drains that have no events, but a list of blocks from which replay continues: after unrecorded steps, and
# after a lost event.
_WINDOW = "window"
_LOST = "lost"
_LISTS = (_WINDOW, _LOST)
_ALONE = "alone"
_WAIT = 10.0  # s to wait for another thread's drain
_TRIES = 3  # consecutive drains that may fail: events that are not drained fill the host's memory


class Window(Protocol):
    """Decides which steps are recorded. windows.py implements it. That module needs the cost of drains, and so imports
    this one."""

    begin: int

    def holds(self, step: int) -> bool:
        """Whether a step is recorded."""

    def again(self) -> bool:
        """Whether another window may follow."""


class Drains:
    """Records the allocator's history."""

    def __init__(self) -> None:
        self.recording = False  # whether the allocator's history is on
        self.count = 0
        self.spent_ns = 0
        self.draining = False
        if getattr(self, "_pid", 0) != os.getpid():
            self._pid = os.getpid()
            # The draining thread holds this lock: two concurrent drains would write the same events twice. The lock
            # belongs to the process, not to one recording, since a thread may wait for it while recording starts over.
            self._turn = threading.RLock()
        self.user_options: dict[str, Any] | None = None  # with which the script itself records, if it does
        self.user_traces: list[list[Any]] = []  # events drained since: its own snapshot must have them
        self._stacks = False  # whether Python stacks are being recorded
        self._last_ns = 0
        self._told: Acts = {}  # the counters of all devices at the last drain
        self._by = 0  # identity of the draining thread
        self._looks = 0
        self._failures = 0
        self._at_drain: Acts = {}
        self.failed = 0  # consecutive drains that have failed
        # Whether the ring was emptied without its contents being written: replay then needs a list of blocks to
        # continue from.
        self._lost = False

    # Recording.

    def install(self) -> None:
        """Arranges that recording starts together with CUDA, or now if CUDA has started. Starting earlier would
        initialise CUDA."""
        events.silenced.subscribe(self._silenced)
        if recorder.torch.cuda.is_initialized():
            self._ready()
        elif recorder.first("waiting for CUDA"):
            private.lazy_call(self._ready)

    @guarded("starting the recording", fatal=True)
    def _ready(self) -> None:
        if recorder.level != SILENT and not recorder.cuda and recorder.open_journal():
            with uninterrupted:
                self._start()

    def _start(self) -> None:
        native = recorder.torch.cuda.memory.get_allocator_backend() == "native"
        recorder.cuda_starts(tagging=native)  # with other allocators, tags could not be joined to events
        settings = recorder.settings
        if native and not settings.bare:
            self._stacks = settings.stack_steps > 0 and _paths_are_text()
            self.record()
            self.recording = True
            recorder.set_metadata(private.set_metadata)
        events.cuda_starts.tell(native)
        if settings.source == "measured":
            stamps.begin()
        k = stamps.stamp(recorder.mark(kinds.CUDA_READY))
        self._write(k, "start", devices.counters([], all_devices=True), time.monotonic_ns())
        self._last_ns = time.monotonic_ns()
        if self.recording and devices.seen:
            # Memory was allocated before, so replay needs the allocator's list of blocks.
            self._drain_in_turn(_WINDOW)
        events.cuda_ready.tell()

    def record(self, clear: bool = False) -> None:
        """Turns the history on, or empties it. Stacks are recorded for allocations only, and only in the requested
        steps: they make a drain a hundred times as long."""
        context = "alloc" if self._stacks else None
        options = {
            "context": context,
            "stacks": "python",
            **(self.user_options or {}),
            "max_entries": recorder.settings.max_entries,
        }
        private.record_history("all", clear_history=clear, **options)
        if recorder.level == SILENT:  # another thread's failure has ended recording meanwhile
            self._turn_off()

    def stop_recording(self, for_good: bool) -> None:
        """Stops recording events: outside windows, only counters are recorded."""
        with uninterrupted:
            self.drain("step")
            if self.recording and not self.failed:  # torch empties the ring, so after a failed drain it waits a step
                self._turn_off()
                if for_good:
                    recorder.set_metadata(None)

    def _silenced(self) -> None:
        """Turns the history off after recording has ended: otherwise events would fill the host's memory. There is no
        last drain, since it could not be written, or was itself what failed."""
        if self.recording:
            self._turn_off()

    def _turn_off(self) -> None:
        """Turns the history off, unless the script itself records."""
        self.recording = False
        if self.user_options is None:
            private.record_history(None)

    @contextlib.contextmanager
    def left_alone(self) -> Iterator[None]:
        """A context in which recording starts over and other threads do not drain. The history stays on, and replay
        continues from its next list of blocks."""
        with self._turn:
            self.recording = False
            yield

    def can_resume(self) -> bool:
        """Whether recording can resume. Recording cannot resume while the script itself records, since the script's
        history would be lost."""
        return recorder.cuda and recorder.tagging and self.user_options is None

    def resume_recording(self) -> None:
        """Opens another window. The window's first drain has no events, but the allocator's list of blocks, from which
        replay continues. The drain before has the counters up to now, and states that nothing was recorded before."""
        with uninterrupted:
            self.drain("step")
            self.record(clear=True)
            self.recording, self._lost = True, False
            self.drain(_WINDOW)
        events.window_opened.tell()

    def lists_failure(self) -> bool:
        """Whether to take the allocator's list of blocks for a request that failed outside the recorded steps. A script
        may catch any number of such failures."""
        if self.recording or self.draining or not self.can_resume():
            return False
        if recorder.torch.cuda.is_current_stream_capturing():
            return False
        self._failures += 1
        return self._failures <= _LISTED or self._failures & (self._failures - 1) == 0

    def end_moment(self) -> None:
        """Ends a window that was opened for one moment."""
        with uninterrupted:
            self.drain("oom")
            self.recording = False
            private.record_history(None)

    # When to drain.

    def between_steps(self, finished: int, window: Window) -> bool:
        """Drains if there are enough events, and opens and closes windows. finished: number of steps so far. Returns
        whether recording has resumed."""
        if not recorder.cuda or recorder.level == SILENT:
            return False
        if self.recording and not window.holds(finished):
            self._stacks = False
            self.stop_recording(for_good=not window.again())
        elif finished and finished == window.begin:
            self.resume_recording()
            return True
        elif finished <= _ALWAYS or self._stacks or time.monotonic_ns() >= self.due_ns():
            self._stacks = self._stacks and finished < recorder.settings.stack_steps
            self.drain("step")
        return False

    def due_ns(self) -> int:
        """When the next drain between steps is due, on the monotonic clock."""
        return self._last_ns + _EVERY_NS

    def due(self) -> bool:
        """Whether between_steps would drain even if no window begins."""
        return self.recording or time.monotonic_ns() >= self.due_ns()

    def check(self) -> None:
        """Drains within a step, but only if its events have waited too long or are too many."""
        self._looks += 1
        if self._looks % _LOOK_EVERY == 0 and self.overdue():
            self.drain("full")

    def overdue(self) -> bool:
        """Whether events have waited too long, or are too many. Any thread may call this: the counters cover all
        devices."""
        if not self.recording or self.draining:
            return False
        waited = time.monotonic_ns() - self._last_ns
        if waited < _EVERY_NS:
            return False
        acts = everywhere()
        if waited >= _LONGEST_NS:
            return acts != self._told
        most = min(_MOST, recorder.settings.max_entries // 2)
        return sum(map(sum, acts.values())) - sum(map(sum, self._told.values())) > most

    def quiet(self) -> bool:
        """Whether no thread that can run without the interpreter's lock, such as autograd's, allocates or frees at this
        moment."""
        with freeze_threads():
            before, until = everywhere(), time.monotonic_ns() + _QUIET_NS
            while time.monotonic_ns() < until:
                if everywhere() != before:
                    return False
        return True

    def drain_on_request(self) -> bool:
        """Drains because the collector requested it. Returns False during another drain."""
        if self.draining:
            return False
        self.drain("request")
        return True

    # Draining.

    def drain(self, reason: str) -> None:
        """Takes the events since the last drain, and torch's counters at the same moment."""
        if self._drains_here() or not recorder.cuda or recorder.level == SILENT:
            return
        with uninterrupted:  # between emptying the ring and writing the frame, the events exist nowhere else
            self._drain_in_turn(reason)

    def drain_alone(self) -> None:
        """Drains on a thread of the agent's own. The agent's thread has no device, and queries none, since a query
        could create a context."""
        self.drain(_ALONE)

    def _drains_here(self) -> bool:
        """Whether this thread is draining."""
        return self.draining and self._by == get_ident()

    def _drain_in_turn(self, reason: str) -> None:
        """Waits for another thread's drain, then drains too: this drain may be the last."""
        if not self._turn.acquire(timeout=_WAIT):
            return
        try:
            if not (self._lost and self.recording):
                self._drain(reason)
            if self._lost and self.recording and recorder.level != SILENT:
                self._drain(_LOST)
        finally:
            self._turn.release()

    def _drain(self, reason: str) -> None:
        """A failed drain is reported, and a later one tries again: nothing is lost before the ring is emptied. After
        several consecutive failures, recording ends."""
        self.draining, self._by = True, get_ident()
        began, count = time.monotonic_ns(), self.count
        try:
            self._take(reason, began)
            self.failed = 0
        except Exception as error:
            self.failed += 1
            if self.failed < _TRIES:
                recorder.hook_failed("a drain", error, then="a later drain tries again")
            else:
                recorder.failed("draining", error)
            if self.count > count:
                recorder.mark(kinds.DRAIN_END, 0, self.count)
        finally:
            self.draining = False
            self._last_ns = time.monotonic_ns()
            self.spent_ns += self._last_ns - began

    def _take(self, reason: str, began: int) -> None:
        """Takes the events. Some may be lost. No call of torch both takes the events and empties the ring. Threads that
        run without the interpreter's lock (autograd's, a process group's) may allocate or free in between."""
        if reason != _ALONE and recorder.torch.cuda.is_current_stream_capturing():
            return
        complete = True
        self.count += 1
        k = recorder.mark(kinds.DRAIN_BEGIN, 0, self.count)
        (events.drain_alone if reason == _ALONE else events.drain_begins).tell()
        if self.recording:
            with freeze_threads():
                self._lost = self._lost or reason in _LISTS  # such a list is taken with an empty ring
                snapshot, stats = self._snapshot(reason in _LISTS)
                if reason not in _LISTS:
                    self._lost = True
                    complete = self._emptied()
            recorder.frame(kinds.FRAME_ALLOCATOR, pickle.dumps(snapshot, protocol=4))
            self._keep_for_user(snapshot["device_traces"])
        else:
            stats = devices.counters([], all_devices=True)
        self._write(k, reason, stats, began)
        events.counters_written.tell()
        if self.recording:
            self._told = everywhere()
            self._lost = not complete
        recorder.mark(kinds.DRAIN_END, 0, self.count)

    def script_records(self, options: dict[str, Any] | None, keep: bool = False) -> None:
        """Called when the script begins or ends its own recording with these options. keep: events drained since it
        began still belong to its recording. Otherwise torch forgets them."""
        if not keep:
            self.user_traces.clear()
        self.user_options = options

    def resume_after_script(self) -> None:
        """Empties the ring if it was drained just before a call of the script."""
        with uninterrupted:
            self._lost = not self._emptied()
            if self._lost:
                self._drain_in_turn(_LOST)

    def _snapshot(self, empty: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Takes a snapshot, and torch's counters from the same moment: they did not change while it was taken. Retrying
        loses nothing, since the ring is emptied later. empty: take the list of blocks at a moment from which on the
        ring has every event. When the time for tries ends, it returns the latest snapshot, and the counters show that
        events are missing.
        """
        until = time.monotonic_ns() + _PATIENCE_NS
        while True:
            before = _at_rest(until)
            snapshot = private.memory_snapshot(None)
            traces = snapshot["device_traces"]
            stats = devices.counters([len(t) for t in traces], all_devices=False)
            self._at_drain = devices.acts()
            same = none_since(before, self._at_drain)
            if empty and any(event["action"] != "snapshot" for trace in traces for event in trace):
                self.record(clear=True)
                same = False
            if same or time.monotonic_ns() > until:
                return snapshot, stats

    def _emptied(self) -> bool:
        """Empties the ring. Returns whether nothing happened since the counters were last read."""
        self.record(clear=True)
        return none_since(self._at_drain, devices.acts())

    def _write(self, k: int, reason: str, stats: list[dict[str, Any]], began: int) -> None:
        recorder.frame(
            kinds.FRAME_CHECKPOINT,
            {
                "drain": self.count,
                "k": k,
                "reason": reason,
                "time_ns": time.time_ns(),
                "drain_ns": time.monotonic_ns() - began,
                "recording": self.recording,
                "devices": stats,
            },
        )
        new = devices.news()
        if new:
            events.devices_seen.tell(new)

    @guarded("keeping events for the script")
    def _keep_for_user(self, traces: list[Any]) -> None:
        """Keeps the drained events that the script's own snapshot must contain."""
        if self.user_options is None:
            return
        most = self.user_options.get("max_entries", recorder.settings.max_entries)
        for i, trace in enumerate(traces):
            while len(self.user_traces) <= i:
                self.user_traces.append([])
            kept = self.user_traces[i]
            kept.extend(trace)
            del kept[: max(0, len(kept) - most)]


def _paths_are_text() -> bool:
    """Whether torch can report the paths of code. If a path is not UTF-8, torch takes no snapshot with stacks."""
    try:
        "".join(map(str, [*sys.path, *sys.argv[:1]])).encode()
    except UnicodeEncodeError as error:
        recorder.spared("recording stacks", error)
        return False
    return True


def _at_rest(until: int) -> Acts:
    """Waits until no memory is allocated or freed, and returns the counters. A snapshot of another moment would be
    useless, and costs a microsecond for each event."""
    acts, equal = devices.acts(), 0
    while equal < _LOOKS and time.monotonic_ns() < until:
        acts, previous = devices.acts(), acts
        equal = equal + 1 if acts == previous else 0
    return acts


drains = recorder.part(Drains)
