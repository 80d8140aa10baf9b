"""What a training script may call. All of it does nothing when nobody collects. Only here a function imports: a script
that nobody records shall not load the agent."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Waiting:
    """What was said before torch was imported."""

    def __init__(self) -> None:
        self.installed = False
        self.said: list[Callable[[], None]] = []


_waiting = Waiting()


def _collecting() -> bool:
    """Whether the agent will record this process, or does already."""
    return bool(os.environ.get("DPSIGHT_SPOOL")) and hasattr(sys, "_dpsight_boot")


def installed() -> None:
    """The agent is in place: catches up on what was said before."""
    _waiting.installed = True
    for say in _waiting.said:
        say()
    _waiting.said.clear()


def _recording() -> bool:
    if not _waiting.installed:
        return False
    from dpsight.recorder import recorder

    return bool(recorder.level)


class _Sparing:
    """What a script may call fails neither where it is recorded nor where it is not: arguments that cannot be recorded
    are said on stderr, once."""

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
    """A named phase of the run, as a context manager or a decorator: with dpsight.phase("setup.data"): …"""

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

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with phase(name):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def step(samples: int | None = None, tokens: int | None = None) -> None:
    """Ends a training step of so many samples and tokens."""
    if _recording():
        from dpsight.recorder import steps

        with _Sparing("step"):
            steps.user(samples, tokens)


def mark(name: str) -> None:
    """Marks a moment."""
    if _recording():
        from dpsight import kinds
        from dpsight.recorder import recorder

        with _Sparing("mark"):
            recorder.mark(kinds.USER_MARK, 0, recorder.name(name))


def tag(tensor: Any, category: str, name: str) -> None:
    """Says what a tensor's memory is: one of dpsight's categories, and a name."""
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
    """Reports a value, such as the loss."""
    if _recording():
        import time

        from dpsight import kinds
        from dpsight.recorder import recorder

        with _Sparing("metric"):
            known = {"time_ns": time.time_ns(), "name": str(name), "value": float(value)}
            k = recorder.mark(kinds.USER_MARK, 0, recorder.name(name))
            recorder.frame(kinds.FRAME_METRIC, {"k": k, **known})


def plan(warmup: int, timed: int) -> int:
    """Announces that dpsight.step() will end each step, and returns how many to run: to each timed (bare) step comes an
    instrumented one."""

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
