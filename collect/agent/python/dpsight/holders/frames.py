"""The functions that are under way, and what each is in the middle of."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType

from dpsight.recorder import codes, thread

_MOST_FRAMES = 1000


def script() -> FrameType | None:
    """The frame in which this thread asked for memory. It is never one of dpsight's: a frame with itself as a
    variable would stay alive, with everything that it refers to."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and ours(frame) and frame.f_code is not codes.call:
        frame = frame.f_back
    return frame


def ours(frame: FrameType) -> bool:
    """Whether a function is the agent's."""
    name = frame.f_globals.get("__name__")
    return type(name) is str and name.startswith("dpsight.")


def frames(top: FrameType | None) -> Iterator[FrameType]:
    """A frame and those below it."""
    frame = top
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def alone() -> bool:
    """Whether no other thread runs Python code. Threads that the agent started do not count."""
    others = sys._current_frames()
    others.pop(threading.get_ident(), None)  # else this frame is its own variable, and stays
    return all(ours(list(frames(top))[-1]) for top in others.values())


def places() -> Iterator[tuple[FrameType, str]]:
    """The frames of this thread and, if it is the engine's, of the threads that wait for it. Each has the category
    of what lives only as long as its current call."""
    engine = thread.on_engine()
    yield from _within(script(), "activation_gradients" if engine else "")
    if engine:
        others = sys._current_frames()
        others.pop(threading.get_ident(), None)  # else this frame is its own variable, and stays
        for top in others.values():
            if any(f.f_code is codes.run for f in frames(top)):
                yield from _within(top, "")


def _within(top: FrameType | None, category: str) -> Iterator[tuple[FrameType, str]]:
    """The frames below top, outermost first."""
    for frame in reversed(list(frames(top))):
        if frame.f_code is codes.call:
            category = "forward_temporaries"
        elif frame.f_code is codes.step:
            category = "optimizer_temporaries"
        yield frame, category
