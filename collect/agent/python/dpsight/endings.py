"""Observes how the process ends: by an uncaught exception or by the interpreter's exit. The module sets no signal
handler, since that would replace the script's own."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from typing import Any

from dpsight import kinds
from dpsight.interruptions import uninterrupted
from dpsight.masking import mask
from dpsight.patch import Patches
from dpsight.recorder import drains, events, guarded, recorder, stamps, steps
from dpsight.recorder.timing import BRIEF, PATIENCE
from dpsight.tags import tags


class Ending:
    """Whether this process has reported its end, and what it reported."""

    def __init__(self) -> None:
        self._reason = "exit"
        self._ended = False

    def install(self, patches: Patches) -> None:
        """Keeps the present excepthook and calls it later, and registers the last drain."""
        previous = sys.excepthook

        def excepthook(kind: Any, value: Any, traceback: Any) -> None:
            self._uncaught(kind, value, traceback)
            previous(kind, value, traceback)

        patches.set(sys, "excepthook", excepthook)
        if recorder.settings.alone:
            return  # a process that was attached to: its journal is removed when it ends
        atexit.register(self.finish)
        at_once = os._exit

        @functools.wraps(at_once)
        def _exit(*args: Any, **kwargs: Any) -> None:
            try:
                # Another thread may end a process whose main thread hangs, perhaps while it holds what the last drain
                # needs.
                if threading.current_thread() is threading.main_thread():
                    with uninterrupted:  # without dpsight the script's handlers would no longer run here
                        # Without this, a handler could end the process in the middle of a frame, which would stay
                        # incomplete.
                        if recorder.journal is None or not recorder.journal.busy():
                            self.finish(BRIEF)
                        at_once(*args, **kwargs)
            finally:
                at_once(*args, **kwargs)

        _exit.__module__ = "os"  # so that unpickling finds it, also in a child without the agent
        patches.set(os, "_exit", _exit)

    def uninstall(self) -> None:
        """Removes the hooks. The process continues without being recorded."""
        atexit.unregister(self.finish)

    @guarded("recording an exception")
    def _uncaught(self, kind: type[BaseException], value: BaseException, traceback: Any) -> None:
        """Called when an exception is about to end the process."""
        if recorder.journal is None or not recorder.level:
            return
        self._reason = "exception"
        name = kind.__name__
        recorder.mark(kinds.EXCEPTION, 0, recorder.name(name))
        lines = str(value).strip().splitlines()
        message = lines[0] if lines else ""
        events.uncaught.tell(traceback)
        recorder.frame(kinds.FRAME_EXCEPTION, {"type": name, "message": message, "oom": _is_oom(value)})

    def finish(self, patience: float = PATIENCE) -> None:
        """Called at the interpreter's exit: drains, and records that the process ended. patience: seconds to wait for
        the device's last work."""
        if self._ended or recorder.journal is None or not recorder.level or os.getpid() != recorder.pid:
            return
        self._ended = True
        self._finish(patience)

    @guarded("ending the recording")
    def _finish(self, patience: float) -> None:
        k = recorder.mark(kinds.EXIT)
        if recorder.cuda:
            stamps.flush(patience)
            events.exit_begins.tell()
            drains.drain("exit")
            if drains.failed:
                drains.drain("exit")  # the last drain
        tags.flush()
        events.process_ends.tell()
        end = {
            "reason": self._reason,
            "marks": k,
            "drains": drains.count,
            "drain_ns": drains.spent_ns,
            "steps": steps.number,
        }
        recorder.frame(kinds.FRAME_END, end)


def _is_oom(error: BaseException | None) -> bool:
    """Whether an exception is a lack of CUDA memory, or was caused by one."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, recorder.torch.OutOfMemoryError) or "CUDA out of memory" in str(error):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def refuse(text: str) -> None:
    """Ends a process that cannot be recorded, and prints why in one sentence."""
    sys.stderr.write(f"dpsight: {mask(text)}\n")
    raise SystemExit(2)


ending = recorder.part(Ending)
