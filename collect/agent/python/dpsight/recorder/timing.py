"""Measures GPU time between marks with CUDA events. Events are pooled, and read only after they have happened. Nothing
here makes the host wait for the device, and no event takes memory from the allocator.

No event is ever destroyed. The destructor of torch's events asks for the current device, and ends the process if that
fails: in a forked child, when it drops inherited events or exits, and after an error that stays on the device.

Phases are timed in every step, except in most short steps of long runs (unphased_steps.py). Instrumented steps also
time the calls of modules, forward and backward, and what DP hooks compute for them, so that time can be assigned to
layers.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from bisect import bisect_left
from typing import Any

from dpsight import kinds
from dpsight.interruptions import by_script
from dpsight.recorder.core import COUNTERS, MODULES, recorder
from dpsight.recorder.hostmemory import host_memory
from dpsight.torch_compat import lasting, private

INTERVAL = struct.Struct("<IIq")
# How many seconds to wait for the device's last work: steps of tens of seconds may still be queued. A device that hangs
# may be the reason why a script ends, so the wait is limited.
PATIENCE = 60.0
BRIEF = 3.0
_ident = threading.get_ident
_NOBODY = -1
_FIRST = 0

# A stamp that has no interval yet: mark, event, device, and the address of the stream.
_Stamp = tuple[int, Any, int, int]


class Stamps:
    """The recorded stamps of this process. A stamp is a CUDA event for a mark."""

    __slots__ = (
        "_current_device",
        "_engine",
        "_pid",
        "_raw_stream",
        "_record_event",
        "_thread",
        "on",
        "pending",
        "places",
    )

    def __init__(self) -> None:
        left: list[_Stamp] = getattr(self, "pending", [])
        if getattr(self, "_pid", 0) != os.getpid():
            self._pid, left = os.getpid(), []
            # By device: free events, and streams by their addresses. Events are kept for the whole process, and one
            # recording after another uses them. A forked child has none.
            self.places: dict[int, tuple[list[Any], dict[int, Any]]] = {}
        for _, event, device, _ in left:
            self.places[device][0].append(event)
        self.on = False  # whether events are recorded
        self.pending: list[_Stamp] = []
        self._thread = 0  # the thread that stamps
        # The thread of autograd's engine that stamps in the present run; _FIRST = the first that arrives.
        self._engine = _NOBODY

    def begin(self) -> None:
        """Starts recording stamps."""
        # torch's functions are stored here, since looking them up each time is slow. Event.record is a Python method
        # around one in C, and torch.cuda.current_stream() builds a stream each time. Each would take longer than the
        # stamp.
        self._current_device, self._raw_stream = private.current_device, private.raw_stream
        self._record_event = private.record_event
        self.on = True

    def stamp(self, k: int) -> int:
        """Records an event for a mark between phases, and returns the mark."""
        host_memory.phase(k)
        if self.on and k and recorder.level > COUNTERS:
            self._record(k)
        return k

    def step(self, k: int) -> None:
        """Records an event for a mark between steps."""
        if self.on and k:
            self._record(k)

    def module(self, k: int) -> None:
        """Records an event for a mark inside a phase. module records only in instrumented steps, which do other extra
        work anyway."""
        if self.on and k and recorder.level >= MODULES:
            self._record(k)

    def backward_begins(self) -> None:
        """Called when backward begins. Until backward_ends the stamping thread waits for the engine, so one of the
        engine's threads may stamp in its place."""
        if self._thread == _ident():
            self._engine = _FIRST

    def backward_ends(self) -> None:
        """From now on the engine's threads do not stamp."""
        self._engine = _NOBODY

    def engine_arrives(self) -> None:
        """Called on a thread of the engine. If there are threads of several devices, the one that continues where the
        run began stamps."""
        if self._engine == _FIRST and self.on and self.pending and private.current_device() == self.pending[-1][2]:
            self._engine = _ident()

    def _record(self, k: int) -> None:
        thread = _ident()
        if thread != self._thread and thread != self._engine:
            if self._thread:
                return  # an interval needs two events of one thread
            self._thread = thread
        try:
            device = self._current_device()
            raw = self._raw_stream(device)
            # While a graph is captured, an event would become part of it. The default stream has the address 0, and is
            # never captured.
            if raw and private.is_capturing():
                return
            place = self.places.get(device)
            if place is None:
                place = self.places[device] = ([], {})
            pool, streams = place
            stream = streams.get(raw)
            if stream is None:
                stream = streams[raw] = recorder.torch.cuda.current_stream()
            event = pool.pop() if pool else lasting(recorder.torch.cuda.Event(enable_timing=True))
            self._record_event(event, stream)
        except RuntimeError as error:
            self._give_up(error)
            return
        self.pending.append((k, event, device, raw))

    def flush(self, patience: float = 0.0) -> None:
        """Writes the intervals whose events have happened. With patience, in seconds, it waits for the others too, but
        not longer, since a script whose device hangs must be able to end."""
        pending = self.pending
        if not pending:
            return
        out = bytearray()
        done = 0
        try:
            if patience and self.on:
                until = time.monotonic() + patience
                while not pending[-1][1].query() and time.monotonic() < until:
                    time.sleep(0.001)
            happened = self.happened()
            while done + 1 < happened:
                begin_k, begin, device, _ = pending[done]
                end_k, end, end_device, _ = pending[done + 1]
                if device == end_device:
                    out += INTERVAL.pack(begin_k, end_k, round(begin.elapsed_time(end) * 1e6))
                self.places[device][0].append(begin)
                done += 1
        except RuntimeError as error:
            self._give_up(error)
            done = len(pending)
        del pending[:done]
        if out:
            recorder.frame(kinds.FRAME_TIMES, out)

    def happened(self) -> int:
        """The number of pending events that have happened, up to the first that has not. Events of one stream happen in
        order, so only a few are queried: querying each would take as long as reading it."""
        pending = self.pending
        n = len(pending)  # other threads keep stamping

        def waits(i: int) -> bool:
            return not pending[i][1].query()

        if len({stamp[2:] for stamp in pending[:n]}) > 1:
            return next(filter(waits, range(1, n)), n)
        return bisect_left(range(n), True, key=waits) if waits(n - 1) else n

    def _give_up(self, error: RuntimeError) -> None:
        """Gives up on a failed device, which reports no more times. The script will see the error by itself."""
        if by_script(error):
            raise error
        if self.on:
            self.on = False
            recorder.mark(kinds.TIMED_OUT)
            if "CUDA" not in str(error):
                recorder.hook_failed("timing", error)


stamps = recorder.part(Stamps)
