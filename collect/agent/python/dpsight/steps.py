"""Steps as the agent sees them while they happen, to choose where it drains and switches modes. Where exactly the steps
of a run lie is decided offline, from all marks."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from threading import get_ident
from typing import Any

from dpsight import allocator, kinds, timing
from dpsight.interruptions import uninterrupted
from dpsight.marks import frame, mark
from dpsight.state import local, state
from dpsight.windows import windows

# An instrumented step of a few milliseconds takes up to twice as long as a bare one. So many pairs of both say what it
# costs and where everything is; in a longer window one step in so many shows whether that changes. Later windows are
# short, and what is new in one is to be seen: they have more.
_PAIRS = 10
_THEN = 32
_LATER = 8
# Of steps so short, beyond the windows, one in so many has phases (unphased.py). Longer ones do not show what phases
# cost.
_SHORT_NS = 25_000_000
_PHASED = 16


class Steps:
    """Counts steps. A step ends when its boundary optimizer has updated, or where the script says so."""

    def __init__(self) -> None:
        self.number = 0
        self.explicit = False  # the script itself calls dpsight.step()
        self._planned = False  # it has said how many of its steps are to be timed
        self._updates: dict[Hashable, int] = {}
        self._boundary: Hashable = None
        self._since = 0  # updates of others since the boundary's last one
        self._most = 0  # the most there ever were
        self._first = 0  # warm-up is counted from this step
        self._callbacks: list[Callable[[], None]] = []
        self._ended_ns = 0
        self._took_ns = (1 << 62, 1 << 62)  # the last two steps
        self._thread = 0  # that ended it
        self._needs_phases = False
        self._both_ends = False  # updates have two marks always
        self._unphased_until = 0  # the next step that may be another than one without phases
        self._rests_until_ns = 0  # when a drain is due

    def on_end(self, callback: Callable[[], None]) -> None:
        """Has callback called between two steps."""
        self._callbacks.append(callback)

    def ends_alone(self, key: Hashable) -> bool:
        """Whether each update is of the optimizer `key`, and ends a step."""
        return len(self._updates) == 1 and key == self._boundary and not self._both_ends

    def ended_alone(self) -> bool:
        """The only optimizer has updated, in a step without phases. If nothing is to be done before the next step, one
        mark says so and ends this one, and True is returned. All of this runs cold, once a step, so each line counts.
        """
        now = time.monotonic_ns()
        key: Any = self._boundary
        if now - self._ended_ns < _SHORT_NS and now < self._rests_until_ns and self.number + 1 < self._unphased_until:
            self._ended_ns = now
            self._updates[key] += 1
            timing.step_stamp(mark(kinds.UPDATED, kinds.ENDS, key, self.number))
            self.number += 1
            state.active, state.calling, state.passed = False, False, 0
            return True
        return False

    def updated(self, key: Hashable) -> None:
        """An update of the optimizer `key` has ended.

        With several optimizers (GANs) the boundary is the one that updates least often, of equals the one that came
        last. That is settled during warm-up, which a new optimizer begins again: later changes would switch modes
        within a step. One that has evidently been put aside (training in stages) is forgotten.
        """
        if self.explicit:
            return
        counts = self._updates
        new = key not in counts
        counts[key] = counts.get(key, 0) + 1
        if new and self._boundary is not None:
            self._first = self.number
            self._unphased_until = 0
        if new or self.warming():
            best = key
            for k, n in list(counts.items()):
                if n <= counts[best]:
                    best = k
            if best != self._boundary:
                self._choose_boundary(best)
        if key != self._boundary:
            self._since += 1
            if self._since <= 2 * self._most + 1:
                return
            counts.pop(self._boundary, None)
            self._choose_boundary(key)
        self._most = max(self._most, self._since)
        self._since = 0
        self.end(stamped=True)

    def _choose_boundary(self, key: Hashable) -> None:
        self._boundary = key
        self._most = sum(n for k, n in list(self._updates.items()) if k != key)

    def user(self, samples: int | None, tokens: int | None) -> None:
        """dpsight.step(): from now on only these calls end a step."""
        if not self.explicit:
            self.explicit = True
            self.keep_phases()
        mark(kinds.USER_STEP, 0, _operand(samples), _operand(tokens))
        # Without plan() the update just before the first call has ended the step already.
        if state.active or self.number == 0:
            self.end()

    def plan(self, warmup: int, timed: int) -> None:
        """dpsight.plan(): so many steps will come, and dpsight.step() will end each."""
        self.explicit = self._planned = True
        state.warmup = warmup
        frame(kinds.FRAME_PLAN, {"warmup": warmup, "timed": timed})
        self.mode()

    def warming(self) -> bool:
        """Whether this step is a warm-up step."""
        return self.number - self._first < state.warmup

    def keep_phases(self) -> None:
        """From here on, in this step too, nothing goes without its phases."""
        self._needs_phases = True
        if state.unphased:
            from dpsight import optimizers

            optimizers.mark_begin()
            state.unphased = state.alone = 0
            self.mark_mode()

    def mark_both_ends(self) -> None:
        """From here on updates are marked where they begin, too, in steps without phases."""
        self._both_ends = True
        state.alone = 0

    def end(self, stamped: bool = False) -> None:
        """Ends a step and begins the next, whole: an interrupt in between would leave a step without a beginning.
        stamped: an event was recorded a moment ago, and nothing ran on the device since. One step without phases after
        another has one mark between them."""
        now, thread = time.monotonic_ns(), get_ident()
        self._took_ns, self._ended_ns = (self._took_ns[1], now - self._ended_ns), now
        stamped = stamped and not state.unphased
        if thread == self._thread == state.unphased and self._goes_on_so():
            timing.step_stamp(mark(kinds.STEP_END, 0, self.number))
            self.number += 1
            state.active, state.calling, state.passed = False, False, 0
            return
        with uninterrupted:
            drains = allocator.drains  # before the mark, which may drain on request
            k = mark(kinds.STEP_END, 0, self.number)
            if not stamped:
                timing.step_stamp(k)
            state.active, state.calling, state.passed = False, False, 0
            self._thread = thread
            self.number += 1
            windows.advance(self.number)
            # In a bare step only what begins and ends it is recorded: decide first, so that nothing is walked in vain.
            self._choose()
            for callback in self._callbacks:
                callback()
            self.mode()
            k = mark(kinds.STEP_BEGIN, 0, self.number)
            if allocator.drains != drains:  # the time in which the agent drained is left out
                timing.step_stamp(k)

    def _choose(self) -> None:
        """Warm-up steps are instrumented; then instrumented and bare steps take turns for a while, for published times
        come from bare ones, and their difference is the instrument's cost; then most are bare, for what they allocate
        is known by the few that are not. Where a plan counts the bare ones they take turns to its end. Without a
        recording there is nothing to explain."""
        if state.bare or state.dead or not state.tagging or not windows.holds(self.number):
            state.instrumented = False
        elif windows.begin:
            state.instrumented = self._has_its_turn(self.number - windows.begin, 0, _LATER)
        else:
            n = self.number - self._first - state.warmup
            state.instrumented = self.warming() or self._has_its_turn(n, _PAIRS, _THEN)
        state.unphased = self._thread if self._goes_without_phases() else 0
        state.alone = 0

    def _goes_on_so(self) -> bool:
        """Whether the next step is one without phases as the last was, and nothing is to be done before it."""
        return self.number + 1 < self._unphased_until and self._short() and allocator.rests()

    def _short(self) -> bool:
        """Whether steps are short now, but for one that did more than train."""
        return min(self._took_ns) < _SHORT_NS

    def _goes_without_phases(self) -> bool:
        """Whether this step has no phases."""
        if state.source != "measured" or self._planned or self._needs_phases or not self._short():
            return False
        if state.dead or state.recording or self.warming() or windows.holds(self.number):
            return False
        # One thread trains, and the agent knows it.
        if self._thread != get_ident() or not local.trains or state.trainers > 1:
            return False
        if local.calls or local.backward or local.dp_step or local.scaler or local.optimizer:
            return False
        window = windows.next()  # one that was not opened when it was time is thought of again when a step has phases
        phased = _next_phased(self.number)
        self._unphased_until = min(phased, window) if window > self.number else phased
        self._rests_until_ns = allocator.due_ns()
        return phased != self.number

    def _has_its_turn(self, n: int, pairs: int, then: int) -> bool:
        """Whether the nth step of a window, from 0, is instrumented, if so many pairs begin it and then one in so many
        is."""
        return n % (2 if n < 2 * pairs or self._planned else then) == 0

    def mode(self) -> None:
        """Chooses the mode that holds from here on, and marks it."""
        self._choose()
        self.mark_mode()

    def mark_mode(self) -> None:
        """Marks the mode that holds."""
        flags = kinds.INSTRUMENTED if state.instrumented else 0
        flags |= kinds.WARMUP if self.warming() else 0
        flags |= kinds.RECORDING if state.recording else 0
        flags |= kinds.UNPHASED if state.unphased else 0
        mark(kinds.MODE, flags)


def _next_phased(step: int) -> int:
    """The next step with phases, from this one on: another one of each so many, since scripts do things every second or
    sixteenth step."""
    for turn in (step // _PHASED, step // _PHASED + 1):
        phased = turn * _PHASED + turn * 7 % _PHASED
        if phased >= step:
            break
    return phased


def _operand(count: int | None) -> int:
    """0 says unknown, so counts are one higher."""
    return 0 if count is None else max(0, int(count)) + 1


steps = Steps()


def after_fork() -> None:
    """A child's steps are its own."""
    callbacks = steps._callbacks
    steps.__init__()  # type: ignore[misc]
    steps._callbacks = callbacks
