"""The functions that a training script may call. In a process that is not recorded they do nothing. Only here,
functions contain imports: a script that is not recorded must not load the agent."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take the name for true; an import of typing would take longer than this module's
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Any, TypeVar

    from dpsight.client.predict import Prediction
    from dpsight.client.store import Store
    from dpsight.flight.session import Flight

    _F = TypeVar("_F", bound=Callable[..., Any])


class Waiting:
    """What the script called before it imported torch."""

    def __init__(self) -> None:
        self.installed = False
        self.said: list[Callable[[], None]] = []


_waiting = Waiting()


def _collecting() -> bool:
    """Whether the agent will record this process, or already does."""
    return bool(os.environ.get("DPSIGHT_SPOOL")) and hasattr(sys, "_dpsight_boot")


def installed() -> None:
    """Called once the agent is installed: repeats the calls that the script made before."""
    _waiting.installed = True
    for say in _waiting.said:
        say()
    _waiting.said.clear()


def _in_place(there: bool) -> None:
    """Remembers whether the agent is installed."""
    if there:
        installed()
    else:
        _waiting.installed = False


def _recording() -> bool:
    if not _waiting.installed:
        return False
    from dpsight.recorder import recorder

    return bool(recorder.level)


class _Sparing:
    """A context that keeps errors of dpsight's functions from the script. If an argument cannot be recorded, it reports
    that on stderr, once for each function."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        from dpsight.recorder import recorder

        recorder.spared(f"dpsight.{self._what}()", error)
        return True


class phase:
    """A named phase of the run. It is a context manager and a decorator: with dpsight.phase("setup.data"): …"""

    def __init__(self, name: str) -> None:
        self.name = name
        self._open: list[int] = []

    def __enter__(self) -> phase:
        number = 0
        if _recording():
            from dpsight import kinds
            from dpsight.recorder import recorder, stamps, thread

            with _Sparing("phase"):
                number = recorder.name(self.name)
                stamps.stamp(thread.begin(kinds.PHASE_BEGIN, 0, number))
        self._open.append(number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        number = self._open.pop()
        if number and _recording():
            from dpsight import kinds
            from dpsight.recorder import stamps, thread

            with _Sparing("phase"):
                stamps.stamp(thread.end(kinds.PHASE_BEGIN, 0, number))

    def __call__(self, function: _F) -> _F:
        import functools

        name = self.name
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & _ASYNC_GENERATOR:
            raise TypeError("dpsight.phase cannot decorate an async generator: use it as a context manager inside")
        wraps = functools.wraps(function)
        if flags & _COROUTINE:
            import types

            resumed: Callable[..., Any] = types.coroutine(_resumed)

            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                return await resumed(name, function(*args, **kwargs))

            return wraps(coroutine)  # type: ignore[return-value]
        if flags & _GENERATOR:

            def generator(*args: Any, **kwargs: Any) -> Any:
                return (yield from _resumed(name, function(*args, **kwargs)))

            return wraps(generator)  # type: ignore[return-value]

        def call(*args: Any, **kwargs: Any) -> Any:
            with phase(name):
                return function(*args, **kwargs)

        return wraps(call)  # type: ignore[return-value]


# Flags of a function's code, as inspect defines them. Importing inspect takes milliseconds.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def _resumed(name: str, body: Any) -> Any:
    """Wraps a generator or a coroutine: the phase is open while its code runs, and not while it waits to be resumed."""
    resume, value = body.send, None
    while True:
        try:
            with phase(name):
                value = resume(value)
        except StopIteration as end:
            return end.value
        try:
            value = yield value
            resume = body.send
        except GeneratorExit:
            with phase(name):
                body.close()
            raise
        except BaseException as error:  # the caller threw this exception into the generator
            resume, value = body.throw, error


def step(samples: int | None = None, tokens: int | None = None) -> None:
    """Ends a training step, which processed this many samples and tokens."""
    if _recording():
        from dpsight.recorder import step_limit, steps

        with _Sparing("step"):
            steps.user(samples, tokens)
        step_limit.leave()


def mark(name: str) -> None:
    """Marks the present moment with a name."""
    if _recording():
        from dpsight import kinds
        from dpsight.recorder import recorder

        with _Sparing("mark"):
            recorder.mark(kinds.USER_MARK, 0, recorder.name(name))


def tag(tensor: Any, category: str, name: str) -> None:
    """States what a tensor's memory is for: one of dpsight's categories, and a name."""
    if _recording():
        from dpsight.tags import tags

        with _Sparing("tag"):
            tags.user(tensor, category, name)


def config(**params: Any) -> None:
    """Reports parameters of the run."""

    def say() -> None:
        from dpsight import kinds
        from dpsight.recorder import recorder

        with _Sparing("config"):
            recorder.frame(kinds.FRAME_CONFIG, params)

    _say(say)


def metric(name: str, value: float) -> None:
    """Reports a value of the run, such as the loss."""
    if _recording():
        import time

        from dpsight import kinds
        from dpsight.recorder import recorder

        with _Sparing("metric"):
            known = {"time_ns": time.time_ns(), "name": str(name), "value": float(value)}
            k = recorder.mark(kinds.USER_MARK, 0, recorder.name(name))
            recorder.frame(kinds.FRAME_METRIC, {"k": k, **known})


def open(path: str | os.PathLike[str] = "runs") -> Store:
    """Opens the tables of a store, or of one run's folder, for example in a notebook. It needs pyarrow."""
    from dpsight.client.store import Store

    return Store(path)


def predict(
    target: str | os.PathLike[str] | Callable[[], object],
    *arguments: str,
    device: str | None = None,
    store: str | os.PathLike[str] | None = None,
) -> Prediction:
    """Predicts, in a process of its own, the GPU memory that a script with its arguments, or a function without
    arguments, needs. device: as in dpsight predict --device. store: a folder in which the predicted run is kept."""
    from dpsight.client.predict import predict

    return predict(target, arguments, device, store)


def attach(
    store: str | os.PathLike[str] = "runs",
    *,
    name: str | None = None,
    events: int = 200_000,
    journal_mib: int = 64,
    dumps: int = 3,
    signals: bool = True,
) -> Flight:
    """Records this process from now on. A failed request for memory, dpsight.dump() and SIGUSR2 each write a run into
    the store.

    events: the most allocator events that torch keeps before they are written. journal_mib: the most disk space that
    the journal may take. When it is full, recording starts over. dumps: the number of failed requests that each write a
    run. Of the failures after them, the 1st, the 2nd, the 4th, the 8th … write one."""
    from dpsight.flight import session
    from dpsight.flight.settings import Wishes

    return session.attach(Wishes.checked(store, name, events, journal_mib, dumps, signals), _in_place)


def attach_by_environment() -> Flight:
    """Attaches for DPSIGHT_ATTACH=1, with options from other environment variables."""
    from dpsight.flight import session
    from dpsight.flight.settings import from_environment

    return session.attach(from_environment(os.environ), _in_place)


def dump(reason: str = "dpsight.dump()", *, wait: bool = True) -> Path | None:
    """Writes a run with everything recorded so far and returns its folder. Returns None if nothing is being recorded.
    wait: return only after the run's tables are made."""
    from dpsight.flight import session

    return session.dump(reason, wait)


def detach() -> None:
    """Removes the recorder from this process, which continues as if it had never been recorded."""
    from dpsight.flight import session

    session.detach()


def load_ipython_extension(shell: Any) -> None:
    """Defines %%dpsight, which records a cell. %load_ext dpsight calls it."""
    from dpsight.client.notebook import load

    load(shell)


def plan(warmup: int, timed: int) -> int:
    """Announces that dpsight.step() will end each step, and returns how many steps to run: for each timed (bare) step
    there is also an instrumented step."""

    def say() -> None:
        from dpsight.recorder import steps

        with _Sparing("plan"):
            steps.plan(warmup, timed)

    full = os.environ.get("DPSIGHT_MODE") != "bare" and _collecting() and (_recording() or not _waiting.installed)
    _say(say)
    return warmup + (2 * timed if full else timed)


def _say(say: Callable[[], None]) -> None:
    if _recording():
        say()
    elif _collecting() and not _waiting.installed:
        _waiting.said.append(say)
