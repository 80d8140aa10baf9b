"""What each thread is inside of: its open spans. An exception leaves spans open whose end no hook sees: torch runs no
hook after an optimizer's step that raised, and an interrupt may come while the end of a call is being marked. So spans
of both kinds are closed by what is marked next, and whether one is alive its frame tells: torch's wrapper around each
optimizer's step, and our function around each module's call."""

from __future__ import annotations

import sys
import threading
import weakref
from types import CodeType, FrameType

from dpsight import kinds
from dpsight.recorder.core import recorder
from dpsight.recorder.timing import stamps
from dpsight.recorder.unphased_steps import unphased
from dpsight.torch_compat import private

_CALL, _STEP, _RUN = kinds.FORWARD_BEGIN, kinds.OPTIMIZER_BEGIN, kinds.BACKWARD_BEGIN

Call = tuple[int, int, int, int]
"""A module's call: its id(), its number, the call's serial, the sequence number of the first node made in it."""


class Codes:
    """Whose frames tell what a thread is inside of. Hooks set them; None = it cannot be told."""

    __slots__ = ("call", "compiled_step", "run", "step")

    def __init__(self) -> None:
        self.call: CodeType | None = None  # a module's call, with the module as the first of its variable args
        self.step: CodeType | None = None  # an optimizer's step
        self.compiled_step: CodeType | None = None  # one that was compiled
        self.run: CodeType | None = None  # a run of autograd's engine, where it is waited for


class Trainer:
    """A thread that has run a backward of its own: an object that goes when the thread does."""

    __slots__ = ("__weakref__",)


class Runs:
    """The runs of autograd's engine, counted for the whole process: on a GPU hooks of one run on the engine's own
    threads."""

    def __init__(self) -> None:
        self.count = 0  # outermost runs so far
        self.latest = 0  # mark at which the latest of them began
        self.updates_inside = 0  # updates in the run under way
        self.threads = 0  # that have run a backward
        self.trainers: weakref.WeakSet[Trainer] = weakref.WeakSet()  # of the threads that are alive


class Thread(threading.local):
    """The recorder of one thread."""

    def __init__(self) -> None:
        self.spans: list[int] = []  # the kinds of the open ones, outermost first; calls of inner modules are not in it
        self.calls: list[Call] = []  # of modules
        self.backward_modules: list[tuple[int, int]] = []  # modules that backward is inside of: serial, number
        self.arrived = 0  # mark at which the latest backward run that this thread works on began
        self.updated = 0  # number of the optimizer that stepped inside the enclosing DP step or scaler; 0 = none
        self.trains = False  # it has run a backward
        self.trainer: Trainer | None = None  # it has run one that is inside no other
        self.recomputes: list[bool] = []  # whether each recompute that is under way is a reentrant checkpoint's
        self.stage = ""  # the stage of the set-up
        self.stage_number = 0  # of its name, once it is marked

    def begin(self, kind: int, flags: int = 0, a: int = 0, own: int = 0) -> int:
        """Opens a span: closes what is stale, and marks its beginning. own frames are of an optimizer's step that
        begins with it."""
        self.close_stale(own)
        self.mark_engine()
        self.spans.append(kind)  # before the mark: an interrupt in between leaves an end too many, which is no harm
        return recorder.mark(kind, flags, a)

    def enter(self, kind: int, a: int = 0) -> int:
        """Opens a span inside one that is alive: nothing can be stale."""
        self.spans.append(kind)
        return recorder.mark(kind, 0, a)

    def leave(self, kind: int) -> None:
        """Closes what has failed inside the innermost span of this kind, which its caller is about to mark the end
        of."""
        spans = self.spans
        if _STEP in spans and (kind != _STEP or spans.count(_STEP) > 1):
            self._close_steps(0)
        self._forget(kind)

    def end(self, kind: int, flags: int = 0, a: int = 0) -> int:
        """Closes the innermost span of this kind."""
        self.leave(kind)
        return recorder.mark(kind + 1, flags, a)

    def inside(self, kind: int) -> bool:
        """Whether a span of this kind is open."""
        return kind in self.spans

    def _forget(self, kind: int) -> None:
        spans = self.spans
        for i in range(len(spans) - 1, -1, -1):
            if spans[i] == kind:
                del spans[i]
                return

    # What is stale.

    def close_stale(self, own: int = 0) -> None:
        """Closes what was left by an exception, and marks the beginning of an update that goes on without a mark: more
        is to be marked inside it."""
        if self.calls:
            self.close_calls()
        if unphased.updating:
            self._mark_update(own)
        if _STEP in self.spans:
            self._close_steps(own)

    def close_calls(self) -> None:
        """Shortens the stack of calls to those that are alive."""
        alive = _alive(codes.call)
        calls = self.calls
        if not alive and calls:
            number = calls[0][1]
            calls.clear()
            self._forget(_CALL)
            recorder.mark(kinds.FORWARD_END, kinds.REPAIRED, number)
        elif len(calls) > alive:
            del calls[alive:]

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
        """Whether this is a thread of the engine's own, or another that it has taken, at work on a run."""
        return private.graph_task() != -1 and _RUN not in self.spans

    def mark_engine(self) -> None:
        """Where this thread is the engine's and has not said so in this run, it does: it is about to make a mark, or
        has asked for memory in vain. Else its stamps count for nothing, and it could be taken for the thread that
        trains."""
        if self.arrived < runs.latest and private.graph_task() != -1 and _RUN not in self.spans:  # on_engine()
            self.arrives(runs.latest)

    def arrives(self, run: int) -> None:
        """The first hook of a run on this thread, whichever it is, marks it: until then the thread's mark is an old
        one."""
        if self.arrived != run:
            self.arrived = run
            self.backward_modules.clear()
            recorder.mark(kinds.ENGINE, 0, run)
            stamps.engine_arrives()


def in_backward() -> bool:
    """Whether this thread is inside a run of the engine."""
    return private.graph_task() != -1


def _alive(code: CodeType | None, other: CodeType | None = None) -> int:
    """How many frames of this code, or the other, the thread is inside of."""
    frame: FrameType | None = sys._getframe(2)
    alive = 0
    while frame is not None:
        alive += frame.f_code is code or frame.f_code is other
        frame = frame.f_back
    return alive


codes = Codes()
runs = recorder.part(Runs)
thread = recorder.part(Thread)
