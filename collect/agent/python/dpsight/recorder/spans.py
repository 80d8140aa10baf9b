"""Tracks the open spans of each thread: what the thread is inside of. An exception may leave a span open without any
hook seeing its end. torch runs no hook after an optimizer's step that raised, and an interrupt may come while the end
of a call is being marked. So the next mark closes spans that are no longer alive. A span is alive if its frame is: the
frame of torch's wrapper around an optimizer's step, or of dpsight's function around a module's call. A call is
identified by its frame, so that nested calls of one module are distinguished."""

from __future__ import annotations

import sys
import threading
import weakref
from types import CodeType, FrameType

from dpsight import kinds
from dpsight.recorder import events
from dpsight.recorder.core import recorder
from dpsight.recorder.timing import stamps
from dpsight.recorder.unphased_steps import unphased
from dpsight.torch_compat import private

_CALL, _STEP, _RUN = kinds.FORWARD_BEGIN, kinds.OPTIMIZER_BEGIN, kinds.BACKWARD_BEGIN

Call = tuple[int, int, int, int]
"""A module's call: the id() of its frame, the module's number, the call's serial number, and the sequence number of the
first node made in it."""


class Codes:
    """The code objects whose frames show what a thread is inside of. Hooks set them. None = unknown."""

    __slots__ = ("call", "compiled_step", "run", "step")

    def __init__(self) -> None:
        self.call: CodeType | None = None  # code of a module's call, whose variable args begins with the module
        self.step: CodeType | None = None  # code of an optimizer's step
        self.compiled_step: CodeType | None = None  # code of a compiled optimizer's step
        self.run: CodeType | None = None  # code that waits for a run of autograd's engine

    def know(self, **codes: CodeType | None) -> None:
        """Sets some of the code objects by name."""
        for name, code in codes.items():
            setattr(self, name, code)


class Trainer:
    """Stands for a thread that has run an outermost backward. The object lives as long as the thread."""

    __slots__ = ("__weakref__",)


class Runs:
    """The runs of autograd's engine, counted for the whole process: on a GPU hooks of one run on the engine's own
    threads."""

    def __init__(self) -> None:
        self.count = 0  # number of outermost runs so far
        self.latest = 0  # mark at which the latest outermost run began
        self.updates_inside = 0  # updates in the present run
        self.threads = 0  # number of threads that have run a backward
        self.trainers: weakref.WeakSet[Trainer] = weakref.WeakSet()  # one for each living thread that has trained

    def count_one(self) -> None:
        """Counts an outermost run that is about to begin."""
        self.count += 1

    def begins(self, k: int) -> None:
        """Notes that an outermost run of autograd's engine has begun at mark k."""
        self.latest = k

    def update_inside(self) -> None:
        """Notes that the present run has updated parameters."""
        self.updates_inside += 1

    def forget_updates(self) -> None:
        """Forgets the updates of a run that is over."""
        self.updates_inside = 0


class Thread(threading.local):
    """The state of recording in one thread."""

    def __init__(self) -> None:
        self.spans: list[int] = []  # kinds of open spans, outermost first, without calls of inner modules
        self.calls: list[Call] = []  # open calls of modules
        self.backward_modules: list[tuple[int, int]] = []  # modules that backward is inside of: serial, number
        self.arrived = 0  # mark at which the latest backward run began that this thread works on
        self.updated = 0  # number of the optimizer that updated inside the enclosing DP step or scaler; 0 = none
        self.trains = False  # whether the thread has run a backward
        self.trainer: Trainer | None = None  # set if the thread has run an outermost backward
        self.recomputes: list[bool] = []  # for each running recompute, whether it belongs to a reentrant checkpoint
        self.stage = ""  # present stage of the set-up
        self.stage_number = 0  # number of the stage's name, once it is marked
        self.initializes = False  # whether torch steps an optimizer only to make its state

    def begin(self, kind: int, flags: int = 0, a: int = 0, own: int = 0) -> int:
        """Opens a span: closes stale ones and marks its beginning. own: frames of an optimizer's step that begins with
        the span."""
        self.close_stale(own)
        self.mark_engine()
        self.spans.append(kind)  # before the mark: an interrupt in between causes one end too many, which is harmless
        return recorder.mark(kind, flags, a)

    def enter(self, kind: int, a: int = 0) -> int:
        """Opens a span inside a living span, so no span can be stale."""
        self.spans.append(kind)
        return recorder.mark(kind, 0, a)

    def leave(self, kind: int) -> None:
        """Closes spans that failed inside the innermost span of this kind. The caller is about to mark that span's
        end."""
        spans = self.spans
        if _STEP in spans and (kind != _STEP or spans.count(_STEP) > 1):
            self._close_steps(0)
        self._forget(kind)

    def end(self, kind: int, flags: int = 0, a: int = 0) -> int:
        """Closes the innermost span of this kind."""
        self.leave(kind)
        return recorder.mark(kind + 1, flags, a)

    def trained(self, nested: bool) -> None:
        """Notes that this thread runs a backward."""
        if not nested and self.trainer is None:
            trainer = Trainer()
            runs.trainers.add(trainer)
            self.trainer = trainer
        if not self.trains:
            self.trains = True
            runs.threads += 1

    def begin_stage(self, name: str) -> None:
        """Begins a stage of the set-up, without a mark."""
        self.stage, self.stage_number = name, 0

    def mark_stage(self) -> int:
        """Marks the beginning of the present stage of the set-up."""
        self.stage_number = recorder.name(self.stage)
        return recorder.mark(kinds.PHASE_BEGIN, kinds.SETUP, self.stage_number)

    def end_stage(self) -> int:
        """Ends the stage. Returns the number of its name, or 0 if its beginning was not marked."""
        number = self.stage_number
        self.stage, self.stage_number = "", 0
        return number

    def begin_initializing(self) -> None:
        """Until end_initializing, updates only make an optimizer's state."""
        self.initializes = True

    def end_initializing(self) -> None:
        """From now on, updates count as training again."""
        self.initializes = False

    def note_update(self, number: int) -> None:
        """Notes that the optimizer with this number has updated inside a DP step or a scaler; 0 = none has yet."""
        self.updated = number

    def inside(self, kind: int) -> bool:
        """Whether a span of this kind is open."""
        return kind in self.spans

    def _forget(self, kind: int) -> None:
        spans = self.spans
        for i in range(len(spans) - 1, -1, -1):
            if spans[i] == kind:
                del spans[i]
                return

    def close_failed(self, failed: tuple[int, ...]) -> None:
        """Closes the spans that a failed hook has left open. Of phases, which other hooks mark too, it closes only the
        innermost."""
        for kind in failed:
            if kind == _CALL:
                self.calls.clear()
            while kind in self.spans:
                self._forget(kind)
                recorder.mark(kind + 1, kinds.REPAIRED if kind in (_CALL, _STEP) else 0)
                if kind == kinds.PHASE_BEGIN:
                    break

    # Stale spans.

    def close_stale(self, own: int = 0) -> None:
        """Closes spans that an exception left open. If an update has no mark yet, it marks the update's beginning,
        since something inside it is about to be marked."""
        if self.calls:
            self.close_calls()
        if unphased.updating:
            self._mark_update(own)
        if _STEP in self.spans:
            self._close_steps(own)

    def close_calls(self) -> None:
        """Removes calls that have ended from the stack."""
        calls = self.calls
        alive = _calls_alive(calls)
        if len(alive) == len(calls):
            return
        outermost = calls[0]
        calls[:] = alive
        if outermost not in alive:
            self._forget(_CALL)
            recorder.mark(kinds.FORWARD_END, kinds.REPAIRED, outermost[1])

    def _mark_update(self, own: int) -> None:
        if unphased.updating_thread == threading.get_ident():
            unphased.updating = unphased.optimizer = 0
            if _alive(codes.step, codes.compiled_step) > own:
                self.spans.append(_STEP)
                recorder.mark(kinds.OPTIMIZER_BEGIN, 0, unphased.number)

    def _close_steps(self, own: int) -> None:
        if codes.step is None:
            return
        alive = max(0, _alive(codes.step, codes.compiled_step) - own)
        spans = self.spans
        while spans.count(_STEP) > alive:
            self._forget(_STEP)
            recorder.mark(kinds.OPTIMIZER_END, kinds.REPAIRED | (kinds.NESTED if _STEP in spans else 0))

    # Autograd's engine.

    def on_engine(self) -> bool:
        """Whether this thread works on a run of the engine: one of its own threads, or another that it uses."""
        return private.graph_task() != -1 and _RUN not in self.spans

    def mark_engine(self) -> None:
        """Marks that this thread works for the engine, unless it has in this run. mark_engine is called when the thread
        is about to make a mark, or its own request has failed. Without the mark, the thread's stamps would not count,
        and it could be taken for the training thread."""
        if self.arrived < runs.latest and private.graph_task() != -1 and _RUN not in self.spans:  # on_engine()
            self.arrives(runs.latest)

    def arrives(self, run: int) -> None:
        """Called by any hook of a run on this thread. The first one makes a mark: before it, the thread's last mark is
        old."""
        if self.arrived != run:
            self.arrived = run
            self.backward_modules.clear()
            recorder.mark(kinds.ENGINE, 0, run)
            stamps.engine_arrives()


def in_backward() -> bool:
    """Whether this thread is inside a run of the engine."""
    return private.graph_task() != -1


def _calls_alive(calls: list[Call]) -> list[Call]:
    """The calls whose frames this thread is inside of. Frames' addresses are used again: of two calls with one address,
    the later call has the frame."""
    by_frame = {call[0]: call for call in calls}
    alive = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and by_frame:
        if frame.f_code is codes.call and (call := by_frame.pop(id(frame), None)) is not None:
            alive.append(call)
        frame = frame.f_back
    return alive[::-1]


def calling() -> int:
    """The id() of the frame of the innermost module call that this thread is inside of; 0 if there is none. A call
    whose beginning is about to be marked does not count."""
    frame: FrameType | None = sys._getframe(4)
    while frame is not None and frame.f_code is not codes.call:
        frame = frame.f_back
    return id(frame) if frame is not None else 0


def _alive(code: CodeType | None, other: CodeType | None = None) -> int:
    """The number of frames of this code, or of the other code, that the thread is inside of."""
    frame: FrameType | None = sys._getframe(2)
    alive = 0
    while frame is not None:
        alive += frame.f_code is code or frame.f_code is other
        frame = frame.f_back
    return alive


codes = Codes()
runs = recorder.part(Runs)
thread = recorder.part(Thread)
events.hook_failed.subscribe(thread.close_failed)
