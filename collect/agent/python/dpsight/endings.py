"""How it ends: out of memory, an uncaught exception, the interpreter's exit. No signal handler: it would change the
script's own."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
from typing import Any

from dpsight import (
    allocator,
    backward,
    environment,
    failures,
    kinds,
    marks,
    prediction,
    privacy,
    tags,
    timing,
    unphased,
)
from dpsight.interruptions import uninterrupted
from dpsight.marks import frame, mark, name
from dpsight.masking import mask
from dpsight.patch import Patches
from dpsight.state import failed, local, state
from dpsight.steps import steps
from dpsight.torch_compat import CONVOLUTIONS, OPS, private

_reason = "exit"
_ended = False
_noted = False  # errors of failed requests are seen where they reach Python
# Mark of the latest request of each thread that failed and whose error has not reached Python. 0: the engine's threads,
# whose errors reach the thread that waits for them.
_unraised: dict[int, int] = {}


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
    _note(patches)
    atexit.register(finish)
    at_once = os._exit

    @functools.wraps(at_once)
    def _exit(*args: Any, **kwargs: Any) -> None:
        try:
            # Another thread ends a process whose main one hangs, maybe in what the last drain would wait for.
            if threading.current_thread() is threading.main_thread():
                with uninterrupted:  # the script's handlers would have run no more
                    # A handler that is not held may end the process in the middle of a frame: nobody would end that.
                    if marks.journal is None or not marks.journal.busy():
                        finish(timing.BRIEF)
                    at_once(*args, **kwargs)
        finally:
            at_once(*args, **kwargs)

    _exit.__module__ = "os"  # where it is found by who unpickles it, in a child without us too
    patches.set(os, "_exit", _exit)
    marks.on_request(allocator.drain_on_request)


def _note(patches: Patches) -> None:
    """Has errors of requests that failed seen where they reach Python: when the object of one is made. Not all do: for
    a convolution torch tries cuDNN's algorithms one after the other, and goes on with the first whose workspace can be
    had. Nor do all others: what runs a graph of its own, as TorchScript does, makes another error of them."""
    global _noted
    kind = state.torch.OutOfMemoryError
    make = kind.__init__

    @functools.wraps(make)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        _raised()

    try:
        patches.set(kind, "__init__", __init__)
    except TypeError:  # a class that takes no attributes: then all count as the script's
        return
    _noted = True


def _raised() -> None:
    k = max(_unraised.pop(threading.get_ident(), 0), _unraised.pop(0, 0))
    if k and not state.dead:
        try:
            mark(kinds.RAISED, 0, k)
        except Exception as error:
            failed("recording an out-of-memory error", error)


def out_of_memory(device: int, requested: int, limit: int, free: int) -> None:
    """torch's observer: called before the error is raised, in the thread that asked. The script may yet catch it."""
    if state.dead:
        return
    try:
        with uninterrupted:
            _out_of_memory(device, requested, limit, free)
    except Exception as error:
        failed("recording an out-of-memory error", error)


def _out_of_memory(device: int, requested: int, limit: int, free: int) -> None:
    backward.arrive()
    recorded, listed = state.recording, allocator.lists_failure()
    module = failures.tried("module", failures.module, 0) if state.tagging else 0
    late = failures.tried("passes", unphased.begin_late, 0)
    k = mark(kinds.OOM, kinds.NOTED if _noted and _may_be_absorbed() else 0, requested, free)
    engine = backward.running() and not local.backward
    _unraised[0 if engine else threading.get_ident()] = k
    info = {
        "k": k,
        "device": device,
        "requested": requested,
        "limit": limit,
        "free": free,
        "time_ns": time.time_ns(),
        "module": module,
        "recorded": recorded,
        "listed": listed,
    }
    frame(kinds.FRAME_OOM, info)
    if listed:
        tags.forget()
        allocator.resume_recording()
        steps.mark_mode()  # tags are bound in what is recorded only
    if state.recording and state.tagging:
        failures.tried("tags", lambda: failures.tag(recorded), None)
    if listed:
        allocator.end_moment()
        steps.mark_mode()
    else:
        allocator.drain("oom")
    unphased.end_late(late)


def _may_be_absorbed() -> bool:
    """Whether torch may go on without what was asked for: only a convolution does."""
    frame = failures.script()
    while frame is not None and frame.f_globals.get("__name__") == OPS:
        frame = frame.f_back
    if frame is not None and not CONVOLUTIONS.isdisjoint(frame.f_code.co_names):
        return True
    node = private.current_node() if private.current_node is not None and backward.running() else None
    return node is not None and str(node.name()).startswith("ConvolutionBackward")


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


def finish(patience: float = timing.PATIENCE) -> None:
    """The interpreter's exit: drains, and says so. patience: s, for the device's last work."""
    global _ended
    if _ended or marks.journal is None or state.dead or os.getpid() != state.pid:
        return
    _ended = True
    try:
        k = mark(kinds.EXIT)
        if state.cuda:
            timing.flush(patience)
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
    _unraised.clear()
