"""Sources of line events: sys.monitoring from Python 3.12 on, and before that the phantom GPU's library, if it is
loaded."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

Reached = Callable[[CodeType, int], Any]
Left = Callable[..., None]
Resumed = Callable[..., None]
IsOwn = Callable[[CodeType], bool]

# The ids that Python reserves for debuggers, coverage, profilers and optimizers are left to these tools.
_TOOLS = (4, 3)
TRACED = "a debugger or another tracer follows the script"


class Source:
    """A source of line events."""

    NAME: str
    PASS_OVER: Any  # a handler returns this to get no more events of a line

    def follow(self, codes: Iterable[CodeType]) -> None:
        """Begins to report lines of these code objects."""
        raise NotImplementedError

    def rest(self, codes: Iterable[CodeType]) -> None:
        """Stops reporting their lines."""
        raise NotImplementedError

    def add(self, code: CodeType) -> None:
        """Also reports the lines of another code object, while it reports any."""

    def drop(self, code: CodeType) -> None:
        """Stops reporting the lines of one code object."""

    def look_again(self, codes: Iterable[CodeType]) -> None:
        """Reports again the lines that it was told to skip."""
        raise NotImplementedError

    def goes_on(self) -> bool:
        """Whether the source still reports this thread's lines. If the script replaced the tracer for a while, the
        source takes it back."""
        return True

    def end(self) -> None:
        """Stops all reports."""
        raise NotImplementedError


def find_source(reached: Reached, left: Left, resumed: Resumed, is_own: IsOwn) -> tuple[Source | None, str]:
    """Returns the source of line events for this interpreter, or None and the reason why there is none. reached is
    called for lines; left for functions that end, also by an exception; resumed for generators and coroutines that
    continue in the middle of a line, and before Python 3.12 for those that begin; is_own once for each code object that
    begins to run."""
    if sys.version_info >= (3, 12):
        for tool in _TOOLS:
            if sys.monitoring.get_tool(tool) is None:
                return Monitoring(tool, reached, left, resumed, is_own), ""
        return None, "other tools hold sys.monitoring"
    tracer = phantom_tracer()
    if tracer is None:
        return None, "Python 3.12 or later is needed on a GPU"
    if sys.gettrace() is not None:
        return None, TRACED
    return Tracing(tracer, reached, left, resumed, is_own), ""


if sys.version_info >= (3, 12):

    class Monitoring(Source):
        """sys.monitoring, with line events only for the user's own code. Other code is slower only if it raises."""

        NAME = "monitoring"
        PASS_OVER = sys.monitoring.DISABLE

        def __init__(self, tool: int, reached: Reached, left: Left, resumed: Resumed, is_own: IsOwn) -> None:
            monitoring = sys.monitoring
            events = monitoring.events
            self._tool = tool
            self._local = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
            # Python reports exception events for all code, not for one code object. So the handler also gets exception
            # events of functions that are not followed, and cannot disable exception events. Each function that an
            # exception leaves takes 0.25 µs longer, while raising and catching takes 0.3 µs. The handler slows a
            # library that raises much, but only while lines are followed.
            self._exceptions = events.PY_UNWIND | events.PY_THROW

            def starts(code: CodeType, _offset: int) -> Any:
                is_own(code)
                return monitoring.DISABLE  # sent once per code object, which then reports no more beginnings

            monitoring.use_tool_id(tool, "dpsight")
            monitoring.register_callback(tool, events.LINE, reached)
            monitoring.register_callback(tool, events.PY_RETURN, left)
            monitoring.register_callback(tool, events.PY_YIELD, left)
            monitoring.register_callback(tool, events.PY_UNWIND, left)
            monitoring.register_callback(tool, events.PY_RESUME, resumed)
            monitoring.register_callback(tool, events.PY_THROW, resumed)
            monitoring.register_callback(tool, events.PY_START, starts)
            monitoring.set_events(tool, events.PY_START)

        def follow(self, codes: Iterable[CodeType]) -> None:
            sys.monitoring.set_events(self._tool, sys.monitoring.events.PY_START | self._exceptions)
            for code in codes:
                self.add(code)

        def rest(self, codes: Iterable[CodeType]) -> None:
            sys.monitoring.set_events(self._tool, sys.monitoring.events.PY_START)
            for code in codes:
                self.drop(code)

        def add(self, code: CodeType) -> None:
            sys.monitoring.set_local_events(self._tool, code, self._local)

        def drop(self, code: CodeType) -> None:
            sys.monitoring.set_local_events(self._tool, code, 0)

        def look_again(self, codes: Iterable[CodeType]) -> None:
            for code in codes:  # disabled events stay disabled until the code object's events change
                self.drop(code)
                self.add(code)

        def end(self) -> None:
            monitoring = sys.monitoring
            if monitoring.get_tool(self._tool) != "dpsight":
                return
            monitoring.set_events(self._tool, 0)
            for event in ("LINE", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "PY_RESUME", "PY_THROW", "PY_START"):
                monitoring.register_callback(self._tool, getattr(monitoring.events, event), None)
            monitoring.free_tool_id(self._tool)


class Tracer:
    """The functions of the phantom GPU's library. Raises AttributeError if the library lacks them."""

    def __init__(self) -> None:
        library = ctypes.PyDLL(None)
        self.follow, self.rest, self.look_again = (
            library.phantom_lines_follow,
            library.phantom_lines_rest,
            library.phantom_lines_look_again,
        )
        self.follow.argtypes, self.rest.argtypes = [ctypes.py_object] * 4, [ctypes.c_int]
        for function in (self.follow, self.rest, self.look_again):
            function.restype = None


@functools.cache
def phantom_tracer() -> Tracer | None:
    """The tracer of the phantom GPU; None on a real GPU."""
    try:
        return Tracer()
    except (AttributeError, OSError):
        return None


class Tracing(Source):
    """The phantom GPU's library as the tracer of one thread."""

    NAME = "tracing"
    PASS_OVER = True

    def __init__(self, tracer: Tracer, reached: Reached, left: Left, resumed: Resumed, is_own: IsOwn) -> None:
        self._tracer = tracer
        self._functions = (reached, left, resumed, is_own)  # kept here, since the library only borrows them

    def follow(self, codes: Iterable[CodeType]) -> None:
        if sys.gettrace() is None:  # otherwise the script has set its own tracer
            self._tracer.follow(*self._functions)

    def rest(self, codes: Iterable[CodeType]) -> None:
        self._tracer.rest(sys.gettrace() is None)

    def look_again(self, codes: Iterable[CodeType]) -> None:
        self._tracer.look_again()

    def goes_on(self) -> bool:
        if sys.gettrace() is not None:
            return False
        self._tracer.follow(*self._functions)  # the script may have set its own tracer and removed it
        return True

    def end(self) -> None:
        self._tracer.rest(sys.gettrace() is None)
