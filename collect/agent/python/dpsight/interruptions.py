"""Protects work that must not stop half-way: a drain, or the writing of a frame. A Python signal handler may raise
between any two bytecodes, for example when the ring is already emptied and the frame not yet written. So the script's
handlers wait until the agent's work is on disk. A thread's signal mask would not help: the kernel would pick another
thread, and Python would still call the handler in the main thread."""

from __future__ import annotations

import _signal  # without the enumerations of `signal`, which take ten times as long: every step enters the context
import contextlib
import functools
import signal
import threading
from _thread import get_ident as _get_ident  # the interpreter's own function, even if the script replaces threading's
from _thread import interrupt_main as _interrupt_main
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

_ASKED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGBREAK")
# The signals whose handlers are held back. Signals not listed in _ASKED report errors, or have no handlers that raise.
# To ask for the handlers of all sixty-four signals would take longer than a small drain.
_SIGNALS = [int(getattr(signal, name)) for name in _ASKED if hasattr(signal, name)]


class Uninterrupted:
    """A context in which no signal handler of the script runs. Handlers of signals that arrive meanwhile run at its
    end, in order, and may raise there. Contexts may be nested. In threads other than the main thread the context does
    nothing, since Python runs no signal handlers there."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._depth = 0
        self._held: list[int] = []  # signals whose handler the outermost context has taken
        self._handlers: dict[int, Any] = {}
        self._called: list[tuple[int, FrameType | None]] = []
        self._stand_in = self._note  # one object, so that it can be compared with what getsignal returns

    def __enter__(self) -> None:
        if _get_ident() != self._main:
            return
        if self._depth:
            self._depth += 1
            return
        try:
            held, stand_in, getsignal = [], self._stand_in, _signal.getsignal
            self._held = held
            for number in _SIGNALS:
                handler = getsignal(number)
                if callable(handler):
                    held.append(number)
                    if handler is not stand_in:
                        self._handlers[number] = handler
                        _signal.signal(number, stand_in)
            self._depth = 1
        except BaseException:  # a handler raised before all handlers were held
            self._restore()
            raise

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        if _get_ident() != self._main:
            return
        if self._depth > 1:
            self._depth -= 1
            return
        try:
            self._restore()
        finally:
            self._depth = 0
            if self._called:
                self._deliver()

    def entered(self) -> bool:
        """Whether the main thread is inside the context."""
        return self._depth > 0

    @contextlib.contextmanager
    def raising_later(self) -> Iterator[None]:
        """Like the context itself, for code that an exception could not leave. Handlers run at the main thread's next
        line."""
        self.__enter__()
        try:
            yield
        finally:
            called, self._called = self._called, []
            self.__exit__()
            for number, _ in called:
                _interrupt_main(number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Replaces the script's handler. If a restored handler raised before this one could be restored, this one
        stays in place until the next context, and acts as that handler."""
        if self._depth:
            self._called.append((number, frame))
        else:
            self._handlers[number](number, frame)

    def _restore(self) -> None:
        for number in reversed(self._held):  # SIGINT, which users press, comes last
            if _signal.getsignal(number) is self._stand_in:
                _signal.signal(number, self._handlers[number])

    def _deliver(self) -> None:
        raised: BaseException | None = None
        while self._called:
            number, frame = self._called.pop(0)
            try:
                self._handlers[number](number, frame)
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised

    def forget(self) -> None:
        """For a child that another thread forked while the main thread was inside the context: nothing leaves the
        context there. The child's main thread is the thread that forked."""
        self._main = threading.main_thread().ident
        self._restore()
        self._depth = 0
        self._called.clear()


uninterrupted = Uninterrupted()


def _code(handler: Any) -> CodeType | None:
    """The code that runs first when a handler is called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__") and not hasattr(handler, "__func__"):
        handler = getattr(type(handler), "__call__", None)  # noqa: B004
    return getattr(getattr(handler, "__func__", handler), "__code__", None)


def by_script(error: BaseException) -> bool:
    """Whether a signal handler of the script raised this exception in the middle of the agent's work. The agent must
    not catch such an exception. A handler that was replaced before it raised is not recognised."""
    handlers = [*map(_signal.getsignal, _SIGNALS), *uninterrupted._handlers.values()]
    codes = {*filter(None, map(_code, handlers)), Uninterrupted._deliver.__code__}
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in codes:
            return True
        at = at.tb_next
    return False
