"""Drains by time and by number of events, independently of the script. A script that does not train ends no step, and
one that calls no module reaches no hook. Without this module its events would stay in the process, where they take
memory and a kill loses them.

The drain runs on the main thread, between two lines (Py_AddPendingCall, as signal handlers do), and so not during one
of that thread's allocations. A drain on another thread may lose events, since torch allocates without the interpreter's
lock, and a drain takes the events in one call and empties torch's list in another. A drain runs on another thread only
if the main thread reaches no line (it sleeps or waits for another thread), and only while nothing is allocated."""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
import time
from types import FrameType
from typing import Any

from dpsight.interruptions import by_script, uninterrupted
from dpsight.recorder import events
from dpsight.recorder.allocator import drains
from dpsight.recorder.core import SILENT, guarded, recorder

_WHAT = "draining by the clock"
_LOOK = 0.2  # s between two looks at the clock and at the counters
_PATIENCE_NS = 1_000_000_000  # how long the main thread may reach no line
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_OURS = __name__.partition(".")[0] + "."
_sleep, _now = time.sleep, time.monotonic_ns


class DrainTimer:
    """A thread that requests drains, made without the threading module, whose threads the script may count."""

    def __init__(self) -> None:
        self._turn: object = None  # belongs to the thread that looks
        self._asked_ns = 0  # when a drain was requested; 0 = the main thread has answered

    def install(self) -> None:
        """Starts the thread when recording starts."""
        events.cuda_ready.subscribe(self._begin)

    def _begin(self) -> None:
        if drains.recording and self._turn is None:
            self._turn = object()
            _thread.start_new_thread(self._watch, (self._turn,))

    def _watch(self, turn: object) -> None:
        while turn is self._turn and recorder.level != SILENT and _WHAT not in recorder.out:
            _sleep(_LOOK)
            self._look()

    @guarded(_WHAT)
    def _look(self) -> None:
        if not drains.overdue():
            self._asked_ns = 0
        elif not self._asked_ns:
            self._asked_ns = _now()
            ctypes.pythonapi.Py_AddPendingCall(_callback, None)
        elif _now() - self._asked_ns > _PATIENCE_NS and drains.quiet():
            self._asked_ns = 0
            drains.drain_alone()

    def answer(self) -> None:
        """Called when the main thread has reached a line. If that line is the agent's, or a drain is running, the next
        look requests a drain again."""
        self._asked_ns = 0
        frame = sys._getframe(2)
        if _is_ours(frame) or uninterrupted.entered() or not drains.overdue():
            return
        with uninterrupted.raising_later():
            drains.drain("timer")


def _is_ours(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_globals.get("__name__", "").startswith(_OURS)


def _called(_argument: Any) -> int:
    """The interpreter calls this function. An exception raised here could not be caught, so it is raised at the
    script's next line."""
    try:
        timer.answer()
    except BaseException as error:
        if isinstance(error, Exception) and not by_script(error):
            recorder.hook_failed(_WHAT, error)
            return 0
        main = threading.main_thread().ident or 0
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(type(error)))
    return 0


_callback = _CALLBACK(_called)
timer = recorder.part(DrainTimer)
