"""GPU time between marks, by CUDA events. Events are pooled, and read only when they have happened: nothing here ever
makes the host wait for the device."""

from __future__ import annotations

import struct
import threading
from typing import Any

from dpsight import kinds
from dpsight.marks import frame, mark
from dpsight.state import failed, state

_INTERVAL = struct.Struct("<IIq")
_pending: list[tuple[int, Any, int]] = []
_pools: dict[int, list[Any]] = {}
_streams: dict[tuple[int, ...], Any] = {}  # torch's description of a stream → the stream
_ident = threading.get_ident
_thread = 0


def stamp(k: int) -> int:
    """Records an event for mark k, and gives k back."""
    if state.timing and k:
        _record(k)
    return k


def _record(k: int) -> None:
    global _thread
    if not _thread:
        _thread = _ident()
    if _thread != _ident():
        return  # intervals are between neighbours: two threads' events would mix
    cuda, C = state.torch.cuda, state.torch._C
    try:
        if C._cuda_isCurrentStreamCapturing():
            return  # an event would become part of the graph
        device = C._cuda_getDevice()
        # torch.cuda.current_stream() would build a stream each time: most of what a stamp cost.
        described = C._cuda_getCurrentStream(device)
        stream = _streams.get(described)
        if stream is None:
            stream = _streams[described] = cuda.current_stream()
        pool = _pools.setdefault(device, [])
        event = pool.pop() if pool else cuda.Event(enable_timing=True)
        event.record(stream)
    except RuntimeError as error:
        _give_up(error)
        return
    _pending.append((k, event, device))


def flush(wait: bool = False) -> None:
    """Writes the intervals whose events have happened; with wait, all of them."""
    if not _pending:
        return
    out = bytearray()
    done = 0
    try:
        if wait and state.timing:
            _pending[-1][1].synchronize()
        while done + 1 < len(_pending):
            begin_k, begin, device = _pending[done]
            end_k, end, end_device = _pending[done + 1]
            if not end.query():
                break
            if device == end_device:
                out += _INTERVAL.pack(begin_k, end_k, round(begin.elapsed_time(end) * 1e6))
            _pools[device].append(begin)
            done += 1
    except RuntimeError as error:
        _give_up(error)
        done = len(_pending)
    del _pending[:done]
    if out:
        frame(kinds.FRAME_TIMES, out)


def _give_up(error: RuntimeError) -> None:
    """A device that failed gives no more times; the script will hear of it by itself."""
    if state.timing:
        state.timing = False
        mark(kinds.TIMED_OUT)
        if "CUDA" not in str(error):
            failed("timing", error, fatal=False)


def after_fork() -> None:
    """The parent's events cannot be used here."""
    global _thread
    _pending.clear()
    _pools.clear()
    _streams.clear()
    _thread = 0
