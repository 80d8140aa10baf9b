"""What a training script may call. All of it does nothing when nobody collects."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_installed = False
_early: list[Callable[[], None]] = []  # said before torch was imported


def _collecting() -> bool:
    """Whether the agent will record this process, or does already."""
    return bool(os.environ.get("DPSIGHT_SPOOL")) and hasattr(sys, "_dpsight_boot")


def installed() -> None:
    """The agent is in place: catches up on what was said before."""
    global _installed
    _installed = True
    for said in _early:
        said()
    _early.clear()


def _recording() -> bool:
    if not _installed:
        return False
    from dpsight.state import state

    return not state.dead


class phase:
    """A named phase of the run, as a context manager or a decorator: with dpsight.phase("setup.data"): …"""

    def __init__(self, name: str) -> None:
        self.name = name
        self._open: list[int] = []

    def __enter__(self) -> phase:
        number = 0
        if _recording():
            from dpsight import backward, kinds, marks, optimizers, timing
            from dpsight.state import local

            optimizers.mark_begin()
            number = marks.name(self.name)
            backward.arrive()
            timing.stamp(marks.mark(kinds.PHASE_BEGIN, 0, number))
            local.phases += 1
        self._open.append(number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        number = self._open.pop()
        if number and _recording():
            from dpsight import kinds, marks, timing
            from dpsight.state import local

            local.phases = max(0, local.phases - 1)
            timing.stamp(marks.mark(kinds.PHASE_END, 0, number))

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
        from dpsight.steps import steps

        steps.user(samples, tokens)


def mark(name: str) -> None:
    """Marks a moment."""
    if _recording():
        from dpsight import kinds, marks

        marks.mark(kinds.USER_MARK, 0, marks.name(name))


def tag(tensor: Any, category: str, name: str) -> None:
    """Says what a tensor's memory is: one of dpsight's categories, and a name."""
    if _recording():
        from dpsight import tags

        tags.user(tensor, category, name)


def config(**params: Any) -> None:
    """Reports parameters of the run."""

    def say() -> None:
        from dpsight import kinds, marks

        marks.frame(kinds.FRAME_CONFIG, params)

    _say(say)


def metric(name: str, value: float) -> None:
    """Reports a value, such as the loss."""
    if _recording():
        import time

        from dpsight import kinds, marks

        k = marks.mark(kinds.USER_MARK, 0, marks.name(name))
        marks.frame(kinds.FRAME_METRIC, {"k": k, "time_ns": time.time_ns(), "name": name, "value": float(value)})


def plan(warmup: int, timed: int) -> int:
    """Announces that dpsight.step() will end each step, and returns how many to run: to each timed (bare) step comes an
    instrumented one."""

    def say() -> None:
        from dpsight.steps import steps

        steps.plan(warmup, timed)

    full = os.environ.get("DPSIGHT_MODE") != "bare" and _collecting() and (_recording() or not _installed)
    _say(say)
    return warmup + (2 * timed if full else timed)


def _say(say: Callable[[], None]) -> None:
    if _recording():
        say()
    elif _collecting() and not _installed:
        _early.append(say)
