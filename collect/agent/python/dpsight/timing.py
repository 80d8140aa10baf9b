"""GPU time between marks, by CUDA events. Events are pooled, and read only when they have happened: nothing here ever
makes the host wait for the device, and no event takes memory of the allocator's.

No event is ever destroyed. torch's destructor asks for the current device and ends the process where there is none to
ask for: in a forked child, when it lets go of what it inherited or exits, and after an error that the device keeps.

In every step the phases are stamped, but for most short ones of long runs (unphased.py); in instrumented ones the calls
of modules too, forward and backward, and what DP hooks compute for them, so that time has a layer's name.
"""

from __future__ import annotations

import struct
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.interruptions import by_script
from dpsight.marks import frame, mark
from dpsight.state import failed, state
from dpsight.torch_compat import private

_INTERVAL = struct.Struct("<IIq")
# s, for the last work of the device: steps of tens of seconds may still be queued. A script that ends at once may do so
# because they hang.
PATIENCE = 60.0
BRIEF = 3.0
# Stamps that have no interval yet: mark, event, device, and the address of the stream.
_pending: list[tuple[int, Any, int, int]] = []
# Of each device: events that nobody waits for, and its streams by their addresses.
_places: dict[int, tuple[list[Any], dict[int, Any]]] = {}
_device: Callable[[], int]
_raw_stream: Callable[[int], int]
_record_event: Callable[[Any, Any], None]
_ident = threading.get_ident
_thread = 0
_NOBODY = -1
_FIRST = 0
_engine = _NOBODY  # the thread of autograd's engine that stamps in the run under way; _FIRST = the first that arrives


def stamp(k: int) -> int:
    """Records an event for a mark between phases, and gives it back."""
    if state.timing and k and not state.unphased:
        _record(k)
    return k


def step_stamp(k: int) -> None:
    """Records an event for a mark between steps."""
    if state.timing and k:
        _record(k)


def module_stamp(k: int) -> None:
    """Records an event for a mark inside a phase: in instrumented steps only, where other work is done anyway."""
    if state.timing and k and state.instrumented:
        _record(k)


def backward_begins() -> None:
    """Until backward_ends the thread that stamps waits for the engine, so one of the engine's may stamp in its stead:
    their events follow each other as if one thread had made them."""
    global _engine
    if _thread == _ident():
        _engine = _FIRST


def backward_ends() -> None:
    """From here on the engine's threads stamp no more."""
    global _engine
    _engine = _NOBODY


def engine_arrives() -> None:
    """This is a thread of the engine. Of several devices' threads the one that goes on where the run began stamps."""
    global _engine
    if _engine == _FIRST and state.timing and _pending and private.current_device() == _pending[-1][2]:
        _engine = _ident()


def begin() -> None:
    """From here on stamps are recorded. torch's functions are looked up once: Event.record is a method of Python around
    one of C, and torch.cuda.current_stream() builds a stream each time. Their caches cold, each would take longer than
    the stamp."""
    global _device, _raw_stream, _record_event
    _device, _raw_stream, _record_event = private.current_device, private.raw_stream, private.record_event
    state.timing = True


def _record(k: int) -> None:
    global _thread
    thread = _ident()
    if thread != _thread and thread != _engine:
        if _thread:
            return  # intervals are between neighbours: two threads' events would mix
        _thread = thread
    try:
        device = _device()
        raw = _raw_stream(device)
        # An event would become part of a graph. The default stream has the address 0, and is never captured.
        if raw and private.is_capturing():
            return
        place = _places.get(device)
        if place is None:
            place = _places[device] = ([], {})
        pool, streams = place
        stream = streams.get(raw)
        if stream is None:
            stream = streams[raw] = state.torch.cuda.current_stream()
        event = pool.pop() if pool else _lasting(state.torch.cuda.Event(enable_timing=True))
        _record_event(event, stream)
    except RuntimeError as error:
        _give_up(error)
        return
    _pending.append((k, event, device, raw))


def _lasting(event: Any) -> Any:
    """Takes a reference that nobody gives back, not even an interpreter that ends."""
    import ctypes  # torch has loaded it

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(event))
    return event


def flush(patience: float = 0.0) -> None:
    """Writes the intervals whose events have happened; with patience, in seconds, all of them, unless the device hangs:
    a script that ends because of that is to end."""
    if not _pending:
        return
    out = bytearray()
    done = 0
    try:
        if patience and state.timing:
            until = time.monotonic() + patience
            while not _pending[-1][1].query() and time.monotonic() < until:
                time.sleep(0.001)
        happened = _happened()
        while done + 1 < happened:
            begin_k, begin, device, _ = _pending[done]
            end_k, end, end_device, _ = _pending[done + 1]
            if device == end_device:
                out += _INTERVAL.pack(begin_k, end_k, round(begin.elapsed_time(end) * 1e6))
            _places[device][0].append(begin)
            done += 1
    except RuntimeError as error:
        _give_up(error)
        done = len(_pending)
    del _pending[:done]
    if out:
        frame(kinds.FRAME_TIMES, out)


def _happened() -> int:
    """How many of the pending events have happened, up to the first that has not. Those of one stream happen in their
    order, so a few are asked: to ask each would take as long as to read it."""
    n = len(_pending)  # other threads go on stamping

    def waits(i: int) -> bool:
        return not _pending[i][1].query()

    if len({stamp[2:] for stamp in _pending[:n]}) > 1:
        return next(filter(waits, range(1, n)), n)
    return bisect_left(range(n), True, key=waits) if waits(n - 1) else n


def _give_up(error: RuntimeError) -> None:
    """A device that failed gives no more times; the script will hear of it by itself."""
    if by_script(error):
        raise error
    if state.timing:
        state.timing = False
        mark(kinds.TIMED_OUT)
        if "CUDA" not in str(error):
            failed("timing", error, fatal=False)


def after_fork() -> None:
    """The parent's events cannot be used here."""
    global _engine, _thread
    _engine = _NOBODY
    _pending.clear()
    _places.clear()
    _thread = 0
