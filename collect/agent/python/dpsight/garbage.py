"""Measures how much device memory Python's cyclic garbage collector frees. The number of objects determines when the
collector runs, so two equal runs may have different peaks. A prediction reports how much was freed in this way. If it
was more than nothing, the prediction is repeated: once with a collector that never runs, and once with a collector that
runs at once."""

from __future__ import annotations

import gc
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from dpsight.lines.script_lines import lines
from dpsight.recorder import events, guarded, recorder
from dpsight.recorder.counters import total_freed

NEVER = "never"
AT_ONCE = "at once"
# If the collector runs at once: how many objects it may visit for each line and each call of a torch function. If a
# script has more objects, garbage is collected only at every few of these moments.
_OBJECTS_A_MOMENT = 5000
# Visiting this many objects takes about three seconds. After that, collections become rarer by the square of the number
# of visited objects, so that predicting a long script still takes minutes. A limit on time would be more direct, but
# equal runs would then differ.
_OBJECTS_IN_ALL = 5_000_000
_INSTALLED = tuple({*sysconfig.get_paths().values(), *site.getsitepackages(), os.path.dirname(__file__), "<"})
_COUNT_AGAIN = 64  # collections before the objects are counted again


class Garbage:
    """How much garbage was freed, and when the collector runs."""

    def __init__(self) -> None:
        self.collected = 0  # bytes that collections freed
        self.left = 0  # bytes that were garbage at the end, but not freed
        self._before: int | None = None  # bytes freed before the present collection
        self._own: dict[CodeType, bool] = {}  # whether a code object is the script's
        self._moments = 0  # moments for a collection since the last one
        self._collections = 0
        self._objects = 0  # number of objects at the last count
        self._looked_at = 0  # objects visited by all collections

    def install(self) -> None:
        """Watches each collection of a prediction, and runs the collector at the moments that the prediction asks
        for."""
        gc.callbacks.append(self._collection)
        events.silenced.subscribe(self._uninstall)
        events.process_ends.subscribe(self._end)
        when = recorder.settings.garbage
        if when == NEVER:
            gc.disable()
            gc.set_threshold(0)  # also if the script turns the collector off and on again

    def install_at_once(self) -> None:
        """Makes the collector run before each line, if the prediction asks for that. Call this after the code that
        follows lines is installed: before Python 3.12 there is room for one tracer only."""
        if recorder.settings.garbage == AT_ONCE:
            events.cuda_ready.subscribe(self._begin)

    def _uninstall(self) -> None:
        if self._collection in gc.callbacks:
            gc.callbacks.remove(self._collection)

    def facts(self) -> dict[str, int]:
        """The bytes freed so far."""
        return {"collected": self.collected, "left": self.left}

    @guarded("watching the garbage collector")
    def _collection(self, phase: str, _: dict[str, int]) -> None:
        if not recorder.cuda or not recorder.level:
            return
        if phase == "start":
            self._before = total_freed()
        elif self._before is not None:
            self.collected += total_freed() - self._before
            self._before = None

    def _end(self) -> None:
        """Measures what the collector would have freed if it had run."""
        if not recorder.cuda:
            return
        sys.setprofile(None)
        if not lines.on:
            sys.settrace(None)
        collected = self.collected
        gc.collect()
        self.left, self.collected = self.left + self.collected - collected, collected

    def _begin(self) -> None:
        """Excludes objects from before the device is used, since libraries have many of them."""
        if threading.current_thread() is not threading.main_thread() or sys.getprofile() is not None:
            return
        if not lines.on and sys.gettrace() is not None:
            return
        gc.collect()
        gc.freeze()
        sys.setprofile(self._called)
        if lines.on:
            events.line_reached.subscribe(self._line_reached)
            lines.tell_each()
            return
        sys.settrace(self._entered)
        frame: FrameType | None = sys._getframe()
        while frame is not None:  # functions that are already running
            frame.f_trace = self._entered(frame, "call", None)
            frame = frame.f_back

    def _entered(self, frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:
        """Makes the collector run before each line of the script and of the modules beside it, but not of installed
        packages."""
        code = frame.f_code
        own = self._own.get(code)
        if own is None:
            own = self._own[code] = os.path.isfile(code.co_filename) and not code.co_filename.startswith(_INSTALLED)
        return self._line if own else None

    def _line(self, *_: Any) -> Callable[..., Any]:
        """Collects, since the previous line may have made garbage by dropping a reference, without making an object."""
        self._collect()
        return self._line

    def _line_reached(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._collect()

    def _called(self, _: Any, event: str, function: Any) -> None:
        """Collects before each of torch's C functions, if there are new objects."""
        if event == "c_call" and gc.get_count()[0] and _of_torch(function):
            self._collect()

    @guarded("collecting garbage at once")
    def _collect(self) -> None:
        """Collects, unless the script has turned the collector off and so chooses its own moments."""
        if not gc.isenabled():
            return
        self._moments += 1
        rarer = self._looked_at // _OBJECTS_IN_ALL
        if self._moments <= self._objects // _OBJECTS_A_MOMENT + rarer * rarer:
            return
        self._moments = 0
        if self._collections % _COUNT_AGAIN == 0:
            self._objects = len(gc.get_objects())
        self._collections += 1
        self._looked_at += self._objects
        gc.collect()


def _of_torch(function: Any) -> bool:
    """Whether a C function is torch's, or a method of a tensor."""
    owner = getattr(function, "__self__", None)
    name = getattr(owner, "__module__", None) or getattr(owner, "__name__", None)
    return isinstance(name, str) and name.startswith("torch") or isinstance(owner, recorder.torch.Tensor)


garbage = recorder.part(Garbage)
