"""The functions that are running, and what each of them is doing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType

from dpsight.recorder import codes, thread

_MOST_FRAMES = 1000


def script() -> FrameType | None:
    """The frame in which this thread requested memory: the innermost that is no frame of dpsight, or is a module's
    call. A frame that is its own variable would stay alive, with everything that it refers to."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and ours(frame) and frame.f_code is not codes.call:
        frame = frame.f_back
    return frame


def ours(frame: FrameType) -> bool:
    """Whether a function belongs to the agent."""
    name = frame.f_globals.get("__name__")
    return type(name) is str and name.startswith("dpsight.")


def frames(top: FrameType | None) -> Iterator[FrameType]:
    """A frame and its callers, innermost first."""
    frame = top
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def alone() -> bool:
    """Whether no other thread runs Python code. The agent's own threads do not count."""
    others = sys._current_frames()
    others.pop(threading.get_ident(), None)  # otherwise this frame would be its own variable, and stay alive
    return all(ours(list(frames(top))[-1]) for top in others.values())


def places() -> Iterator[tuple[FrameType, str]]:
    """The frames of this thread and, if it is the engine's, of the threads that wait for it. With each frame comes the
    category of memory that lives only as long as the frame's present call."""
    engine = thread.on_engine()
    yield from _within(script(), "activation_gradients" if engine else "")
    if engine:
        others = sys._current_frames()
        others.pop(threading.get_ident(), None)  # otherwise this frame would be its own variable, and stay alive
        for top in others.values():
            if any(f.f_code is codes.run for f in frames(top)):
                yield from _within(top, "")


def _within(top: FrameType | None, category: str) -> Iterator[tuple[FrameType, str]]:
    """The frames from the outermost down to top, with a category."""
    for frame in reversed(list(frames(top))):
        if frame.f_code is codes.call:
            category = "forward_temporaries"
        elif frame.f_code is codes.step:
            category = "optimizer_temporaries"
        yield frame, category
