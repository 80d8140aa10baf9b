"""How it ends: out of memory, an uncaught exception, the interpreter's exit. No signal handler: it would change the
script's own."""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Any

from dpsight import allocator, environment, kinds, marks, prediction, privacy, tags, timing
from dpsight.marks import frame, mark, name
from dpsight.masking import mask
from dpsight.patch import Patches
from dpsight.state import failed, state
from dpsight.steps import steps

_reason = "exit"
_ended = False


def install(patches: Patches) -> None:
    """Chains to the excepthook that is there, and registers the last drain."""
    previous = sys.excepthook

    def excepthook(kind: Any, value: Any, traceback: Any) -> None:
        try:
            uncaught(kind, value)
        except Exception as error:
            failed("recording an exception", error)
        previous(kind, value, traceback)

    patches.set(sys, "excepthook", excepthook)
    atexit.register(finish)
    marks.on_request(allocator.drain_on_request)


def out_of_memory(device: int, requested: int, limit: int, free: int) -> None:
    """torch's observer: called before the error is raised, in the thread that asked. The script may yet catch it."""
    if state.dead:
        return
    try:
        k = mark(kinds.OOM, 0, requested, free)
        info = {
            "k": k,
            "device": device,
            "requested": requested,
            "limit": limit,
            "free": free,
            "time_ns": time.time_ns(),
        }
        frame(kinds.FRAME_OOM, info)
        allocator.drain("oom")
    except Exception as error:
        failed("recording an out-of-memory error", error)


def uncaught(kind: type[BaseException], value: BaseException) -> None:
    """An exception is about to end the process."""
    global _reason
    if marks.journal is None or state.dead:
        return
    _reason = "exception"
    mark(kinds.EXCEPTION, 0, name(kind.__name__))
    lines = str(value).strip().splitlines()
    frame(kinds.FRAME_EXCEPTION, {"type": kind.__name__, "message": lines[0] if lines else "", "oom": is_oom(value)})


def is_oom(error: BaseException | None) -> bool:
    """Whether an exception is, or was caused by, CUDA's memory running out."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, state.torch.OutOfMemoryError) or "CUDA out of memory" in str(error):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def finish() -> None:
    """The interpreter's exit: drains, and says so."""
    global _ended
    if _ended or marks.journal is None or state.dead or os.getpid() != state.pid:
        return
    _ended = True
    try:
        k = mark(kinds.EXIT)
        if state.cuda:
            timing.flush(wait=True)
            allocator.drain("exit")
        tags.flush()
        environment.write()
        prediction.write()
        try:
            privacy.ended()
        except Exception as error:
            failed("reading the privacy accountant", error, fatal=False)
        end = {
            "reason": _reason,
            "marks": k,
            "drains": allocator.drains,
            "drain_ns": allocator.drain_ns,
            "steps": steps.number,
        }
        frame(kinds.FRAME_END, end)
    except Exception as error:
        failed("ending the recording", error)


def refuse(text: str) -> None:
    """Ends a process that cannot be recorded, with one sentence."""
    sys.stderr.write(f"dpsight: {mask(text)}\n")
    raise SystemExit(2)


def after_fork() -> None:
    """A child has an end of its own."""
    global _ended, _reason
    _ended, _reason = False, "exit"
