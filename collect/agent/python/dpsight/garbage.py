"""What Python's cyclic garbage collector frees of the device's memory. When it runs depends on how many objects there
are, so two equal runs may hold another amount at their peaks. A prediction says how much was freed so, and where
something was it is made again, with a collector that never runs and with one that runs at once."""

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
# For collections at once: so many objects are visited for each line and each call of a torch function. If a script
# has more, garbage is collected only at every few of these moments.
_OBJECTS_A_MOMENT = 5000
# Visiting so many objects takes about three seconds. After that the collections become rarer, by the square of the
# visited number, so that a long script is still predicted in minutes. Time would be a better measure, but equal
# runs would differ.
_OBJECTS_IN_ALL = 5_000_000
_INSTALLED = tuple({*sysconfig.get_paths().values(), *site.getsitepackages(), os.path.dirname(__file__), "<"})
_COUNT_AGAIN = 64  # collections until the objects are counted again


class Garbage:
    """How much was freed, and how the collector is to run."""

    def __init__(self) -> None:
        self.collected = 0  # bytes that collections freed
        self.left = 0  # bytes that were garbage at the end, and not yet freed
        self._before: int | None = None  # bytes freed before the collection that runs
        self._own: dict[CodeType, bool] = {}  # whether code is the script's
        self._moments = 0  # at which there might have been a collection, since the last one
        self._collections = 0
        self._objects = 0  # that the collector knows, when last counted
        self._looked_at = 0  # objects, in all collections

    def install(self) -> None:
        """Watches each collection of a prediction, and has them come when the collector asked for them."""
        gc.callbacks.append(self._collection)
        events.silenced.subscribe(self._uninstall)
        events.process_ends.subscribe(self._end)
        when = recorder.settings.garbage
        if when == NEVER:
            gc.disable()
            gc.set_threshold(0)  # a script that turns the collector off and on again finds it off

    def install_at_once(self) -> None:
        """Has the collector run before each line, if it is to. Install it after who follows lines: there is room for
        one tracer before Python 3.12."""
        if recorder.settings.garbage == AT_ONCE:
            events.cuda_ready.subscribe(self._begin)

    def _uninstall(self) -> None:
        if self._collection in gc.callbacks:
            gc.callbacks.remove(self._collection)

    def facts(self) -> dict[str, int]:
        """What was freed so far, in bytes."""
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
        """What the collector would have freed, had it run."""
        if not recorder.cuda:
            return
        sys.setprofile(None)
        if not lines.on:
            sys.settrace(None)
        collected = self.collected
        gc.collect()
        self.left, self.collected = self.left + self.collected - collected, collected

    def _begin(self) -> None:
        """Objects from before the device is used are not visited any more, since libraries have many."""
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
        while frame is not None:  # those that run already
            frame.f_trace = self._entered(frame, "call", None)
            frame = frame.f_back

    def _entered(self, frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:
        """Collects before each line of the script and of the modules beside it, but not of installed packages."""
        code = frame.f_code
        own = self._own.get(code)
        if own is None:
            own = self._own[code] = os.path.isfile(code.co_filename) and not code.co_filename.startswith(_INSTALLED)
        return self._line if own else None

    def _line(self, *_: Any) -> Callable[..., Any]:
        """The line before may have made garbage without making an object: it may have dropped a reference."""
        self._collect()
        return self._line

    def _line_reached(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._collect()

    def _called(self, _: Any, event: str, function: Any) -> None:
        """Collects before each of torch's functions that is written in C, once there are new objects."""
        if event == "c_call" and gc.get_count()[0] and _of_torch(function):
            self._collect()

    @guarded("collecting garbage at once")
    def _collect(self) -> None:
        """A script that has turned the collector off chooses its moments itself."""
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
    """Whether a function written in C is torch's, or a tensor's method."""
    owner = getattr(function, "__self__", None)
    name = getattr(owner, "__module__", None) or getattr(owner, "__name__", None)
    return isinstance(name, str) and name.startswith("torch") or isinstance(owner, recorder.torch.Tensor)


garbage = recorder.part(Garbage)
