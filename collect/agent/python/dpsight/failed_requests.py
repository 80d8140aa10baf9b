"""Records failed requests, as the allocator reports them and as the script sees them. Some failures never reach the
script: for a convolution, torch tries cuDNN's algorithms one after another, and takes the first whose workspace it can
allocate."""

from __future__ import annotations

import functools
import threading
import time
from typing import Any

from dpsight import kinds
from dpsight.holders.frames import frames, places, script
from dpsight.holders.keepers import keepers
from dpsight.holders.look import looks, tag
from dpsight.interruptions import uninterrupted
from dpsight.lines.script_lines import lines
from dpsight.nodes import nodes
from dpsight.patch import Patches
from dpsight.recorder import (
    CALLED,
    COUNTERS,
    MODULES,
    codes,
    drains,
    events,
    guarded,
    in_backward,
    recorder,
    steps,
    thread,
    unphased,
)
from dpsight.registry import registry
from dpsight.taggers.step_io import step_io
from dpsight.torch_compat import CONVOLUTIONS, OPS, private, variables


class Unraised:
    """Failed requests whose errors have not reached Python yet."""

    def __init__(self) -> None:
        # By thread, the mark of its latest failed request. Key 0 stands for the engine's threads, whose errors reach
        # the thread that waits for them.
        self.marks: dict[int, int] = {}


_unraised = recorder.part(Unraised)


class Requests:
    """Records requests that fail."""

    __slots__ = ("_noted",)

    def __init__(self) -> None:
        self._noted = True  # whether the agent notices when an error reaches Python

    def install(self, patches: Patches) -> None:
        """Waits for CUDA, and for errors. An error has reached Python when its object is made. Code that runs its own
        graph, such as TorchScript, makes a different error of it."""
        events.cuda_starts.subscribe(self._observe)
        kind = recorder.torch.OutOfMemoryError
        make = kind.__init__

        @functools.wraps(make)
        def __init__(error: Any, *args: Any, **kwargs: Any) -> None:
            make(error, *args, **kwargs)
            self._raised()

        try:
            patches.set(kind, "__init__", __init__)
        except TypeError:  # a class that accepts no attributes: then all errors count as the script's
            self._noted = False

    def _observe(self, native: bool) -> None:
        if native and recorder.first("observing failed requests"):
            private.attach_oom_observer(self.failed)

    @guarded("recording an out-of-memory error")
    def _raised(self) -> None:
        k = max(_unraised.marks.pop(threading.get_ident(), 0), _unraised.marks.pop(0, 0))
        if k and recorder.level:
            recorder.mark(kinds.RAISED, 0, k)
            events.request_failed.tell()

    @guarded("recording an out-of-memory error")
    def failed(self, device: int, requested: int, limit: int, free: int) -> None:
        """torch calls this observer before it raises the error, in the thread that made the request. The script may
        still catch the error."""
        if recorder.level:
            with uninterrupted:
                self._failed(device, requested, limit, free)

    def _failed(self, device: int, requested: int, limit: int, free: int) -> None:
        thread.mark_engine()
        recorded, listed = drains.recording, drains.lists_failure()
        module = looks.tried("module", _module, 0) if recorder.tagging else 0
        # Backward runs in the engine's thread. The line then comes from the thread that waits for the engine.
        line = looks.tried("line", lambda: lines.number_of(frame for frame, _ in places()), 0)
        late = looks.tried("passes", _begin_late, 0)
        absorbed = self._noted and _may_be_absorbed()
        k = recorder.mark(kinds.OOM, kinds.NOTED if absorbed else 0, requested, free)
        _unraised.marks[0 if thread.on_engine() else threading.get_ident()] = k
        info = {
            "k": k,
            "device": device,
            "requested": requested,
            "limit": limit,
            "free": free,
            "time_ns": time.time_ns(),
            "module": module,
            "line": line,
            "recorded": recorded,
            "listed": listed,
        }
        recorder.frame(kinds.FRAME_OOM, info)
        if listed:
            drains.resume_recording()
            steps.mark_mode()  # tags count only for recorded events
        if drains.recording and recorder.tagging:
            looks.tried("tags", lambda: tag(recorded), None)
            if not absorbed:
                keepers.failed()
        if listed:
            drains.end_moment()
            steps.mark_mode()
        else:
            drains.drain("oom")
        _end_late(late)


def _may_be_absorbed() -> bool:
    """Whether torch may recover from the failed request. torch recovers only in convolutions."""
    frame = script()
    while frame is not None and frame.f_globals.get("__name__") == OPS:
        frame = frame.f_back
    if frame is not None and not CONVOLUTIONS.isdisjoint(frame.f_code.co_names):
        return True
    node = private.current_node() if private.current_node is not None and in_backward() else None
    return node is not None and str(node.name()).startswith("ConvolutionBackward")


def _module() -> int:
    """The number of the module for which this thread requests memory, if the step is bare and so has no mark of it;
    else 0."""
    if recorder.level >= MODULES:
        return 0
    for frame in frames(script()):
        if frame.f_code is codes.call:
            passed = variables(frame).get("args")
            if not passed:
                return 0
            number = registry.number(passed[0], outermost=False)
            if thread.calls and not in_backward():
                nodes.unfinished(thread.calls[0][1], thread.calls[0][3], number)
            return number
    if not thread.on_engine():
        return 0
    node = private.current_node() if private.current_node is not None else None
    return nodes.module_of(node) if node is not None else 0


def _begin_late() -> int:
    """In a step without phases, marks the beginning of the pass in which a request has just failed, unless an earlier
    mark did. Returns the kind of that mark, or 0. The running functions tell which pass it is. The loss is part of
    forward."""
    inside_backward = in_backward()
    if recorder.level != COUNTERS or not (inside_backward or recorder.without_phases()):
        return 0
    thread.close_stale()
    if any(kind in thread.spans for kind in (kinds.OPTIMIZER_BEGIN, kinds.FORWARD_BEGIN, kinds.BACKWARD_BEGIN)):
        return 0
    if inside_backward:
        recorder.mark(kinds.BACKWARD_BEGIN, kinds.ACCUMULATE, 1)
        return kinds.BACKWARD_BEGIN
    passed: Any = None
    for frame in frames(script()):
        if frame.f_code is codes.call:
            passed = variables(frame).get("args") or passed
    root = passed[0] if passed else None
    if root is None and unphased.at != CALLED:
        return 0
    flags = kinds.GRAD if recorder.torch.is_grad_enabled() else 0
    if root is None:
        recorder.mark(kinds.FORWARD_BEGIN, flags | kinds.TRAINING)
    else:
        flags |= kinds.TRAINING if root.training else 0
        recorder.mark(kinds.FORWARD_BEGIN, flags, registry.number(root, outermost=True))
        if recorder.tagging:
            step_io.remember(kinds.INPUT, passed[1:])
    return kinds.FORWARD_BEGIN


def _end_late(begun: int) -> None:
    """Marks the end of the pass that _begin_late began, so that the script's handling of the failure is not part of
    it."""
    if begun:
        recorder.mark(begun + 1, kinds.REPAIRED if begun == kinds.FORWARD_BEGIN else 0)


requests = Requests()
