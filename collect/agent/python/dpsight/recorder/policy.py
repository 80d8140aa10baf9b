"""Follows steps while they happen, to decide when the agent drains and how much it records. Ingest determines a run's
exact steps later, from all marks."""

from __future__ import annotations

import time
from collections.abc import Hashable
from threading import get_ident
from typing import Any

from dpsight import kinds
from dpsight.interruptions import uninterrupted
from dpsight.recorder import events, unphased_steps
from dpsight.recorder.allocator import drains
from dpsight.recorder.boundary import Boundary
from dpsight.recorder.core import COUNTERS, MODULES, PHASES, SILENT, TAGS, recorder
from dpsight.recorder.hostmemory import host_memory
from dpsight.recorder.spans import runs, thread
from dpsight.recorder.timing import stamps
from dpsight.recorder.unphased_steps import NOWHERE, unphased
from dpsight.recorder.windows import windows

# An instrumented step of a few milliseconds takes up to twice as long as a bare one. _PAIRS pairs of an instrumented
# and a bare step show what recording costs and where memory is. Later in a window, one instrumented step in _THEN shows
# whether that changes. Later windows are short and should show what is new, so a larger share of their steps is
# instrumented.
_PAIRS = 10
_THEN = 32
_LATER = 8
_UNPHASED_WITHOUT = (kinds.BACKWARD_BEGIN, kinds.DP_STEP_BEGIN, kinds.SCALER_BEGIN, kinds.OPTIMIZER_BEGIN)


class Steps:
    """Counts steps. A step ends when its boundary optimizer has updated, or where the script calls dpsight.step()."""

    __slots__ = (
        "_boundary",
        "_both_ends",
        "_unphased",
        "_explicit",
        "_first",
        "_initialized",
        "_lines",
        "_planned",
        "_thread",
        "number",
        "trained",
        "updates",
    )

    def __init__(self) -> None:
        self.number = 0
        self.updates = 0  # updates of all optimizers so far
        self.trained = False  # whether something trained since the last step ended
        self._lines = False  # whether the script's lines are followed
        self._boundary = Boundary()
        self._unphased = unphased_steps.UnphasedPolicy()
        self._explicit = False  # whether the script itself calls dpsight.step()
        self._planned = False  # whether the script has called dpsight.plan()
        self._initialized: set[Hashable] = set()  # optimizers whose first update came before any backward
        self._first = 0  # the step from which on warm-up is counted
        self._thread = 0  # the thread that ended the last step
        self._both_ends = False  # whether updates always have two marks

    def trains(self) -> None:
        """Notes that a model has been called or a backward has run."""
        self.trained = True

    def count_update(self) -> None:
        """Counts an update of any optimizer."""
        self.updates += 1

    # Ends of steps.

    def updated(self, key: Hashable) -> None:
        """Called when an update of the optimizer with this key has ended."""
        if self._explicit or (self.number == runs.count == 0 and self._only_initializes(key)):
            return
        if self._boundary.is_new(key):
            self._first = self.number
            self._unphased.begin_again()
        if self._boundary.ends_step(key, self.warming()):
            self.end(stamped=True)

    def _only_initializes(self, key: Hashable) -> bool:
        """Whether an update before any backward seems to serve only to make the optimizer's state. The first such
        update of each optimizer does. A second one shows that the script makes gradients by other means than backward,
        so that the first was a step too."""
        if key not in self._initialized:
            self._initialized.add(key)
            return True
        recorder.mark(kinds.STEP_END, 0, self.number)
        self.number += 1
        return False

    def updated_alone(self) -> bool:
        """Called when the only optimizer has updated, in a step without phases. If nothing is to be done before the
        next step, updated_alone writes one mark for the update, which also ends the step, and returns True. The call
        takes time in every step without phases, so each line counts.
        """
        policy, now = self._unphased, time.monotonic_ns()
        short = now - policy.ended_ns < unphased_steps.SHORT_NS
        if short and now < policy.drain_due_ns and self.number + 1 < policy.until:
            policy.ended_ns = now
            key: Any = self._boundary.key
            self._boundary.updates[key] += 1
            stamps.step(recorder.mark(kinds.UPDATED, kinds.ENDS, key, self.number))
            self.number += 1
            self.trained, unphased.calling, unphased.at = False, False, NOWHERE
            return True
        return False

    def user(self, samples: int | None, tokens: int | None) -> None:
        """dpsight.step(): from now on only these calls end a step."""
        if not self._explicit:
            self._explicit = True
            self.keep_phases()
        recorder.mark(kinds.USER_STEP, 0, _operand(samples), _operand(tokens))
        # Without plan(), the update just before the first call has already ended the step.
        if self.trained or self.number == 0:
            self.end()

    def planned(self) -> bool:
        """Whether the script has announced its number of steps."""
        return self._planned

    def plan(self, warmup: int, timed: int) -> None:
        """dpsight.plan(): the script announces this many steps, and will end each by dpsight.step()."""
        self._explicit = self._planned = True
        recorder.settings.warmup = warmup
        recorder.frame(kinds.FRAME_PLAN, {"warmup": warmup, "timed": timed})
        self.choose_mode()

    def end(self, stamped: bool = False) -> None:
        """Ends a step and begins the next at once, since a step could otherwise lack its beginning. stamped: a CUDA
        event was recorded a moment ago, and nothing has run on the device since. Between two consecutive steps without
        phases there is only one mark."""
        ident = get_ident()
        self._unphased.ended(time.monotonic_ns())
        stamped = stamped and recorder.level != COUNTERS
        if ident == self._thread == recorder.unphased_thread and self._unphased.goes_on(self.number + 1):
            stamps.step(recorder.mark(kinds.STEP_END, 0, self.number))
            self.number += 1
            self.trained, unphased.calling, unphased.at = False, False, NOWHERE
            return
        with uninterrupted:
            count = drains.count  # read before the mark, which may drain on request
            k = recorder.mark(kinds.STEP_END, 0, self.number)
            if not stamped:
                stamps.step(k)
            self.trained, unphased.calling, unphased.at = False, False, NOWHERE
            self._thread = ident
            self.number += 1
            self._between()
            self.choose_mode()
            k = recorder.mark(kinds.STEP_BEGIN, 0, self.number)
            host_memory.step(k)
            if drains.count != count:  # the time of drains is left out
                stamps.step(k)

    def _between(self) -> None:
        """Does the agent's work between two steps. In a bare step only the step's beginning and end are recorded. The
        level is set first, so that no unnecessary walk is made."""
        windows.advance(self.number)
        self._choose_level()
        events.step_ended.tell(self.number)
        recorded = drains.recording
        if drains.between_steps(self.number, windows):
            self.choose_mode()  # tags count only for recorded events
        # Outside windows nothing is tagged: the time of tagging would be part of bare steps.
        events.step_begins.tell(self.number, recorded or drains.recording)

    # The level.

    def choose_mode(self) -> None:
        """Chooses the level for the time from now on, and marks it."""
        self._choose_level()
        self.mark_mode()

    def mark_mode(self) -> None:
        """Marks the present level."""
        flags = kinds.INSTRUMENTED if recorder.level >= MODULES else 0
        flags |= kinds.WARMUP if self.warming() else 0
        flags |= kinds.RECORDING if drains.recording else 0
        flags |= kinds.UNPHASED if recorder.level == COUNTERS else 0
        flags |= kinds.LINES if self._lines else 0
        recorder.mark(kinds.MODE, flags)

    def follows_lines(self, on: bool) -> None:
        """Notes whether the script's lines are followed from now on, for the next mark of the level."""
        self._lines = on

    def warming(self) -> bool:
        """Whether this step is a warm-up step."""
        return self.number - self._first < recorder.settings.warmup

    def _choose_level(self) -> None:
        unphased.optimizer = 0
        if self._goes_without_phases():
            recorder.set_level(COUNTERS, self._thread)
        else:
            recorder.set_level(TAGS if self._instrumented() else PHASES)

    def _instrumented(self) -> bool:
        """Whether this step is instrumented. Warm-up steps are. After warm-up, instrumented and bare steps alternate
        for a while: published times come from bare steps, and the difference shows the cost of recording. Later most
        steps are bare, since a few instrumented steps show what the others allocate. If a plan counts the bare steps,
        both kinds alternate to its end. Without a recording all steps are bare."""
        if not windows.holds(self.number):
            return False
        if recorder.settings.every_step:
            return True
        if windows.begin:
            return self._has_its_turn(self.number - windows.begin, 0, _LATER)
        n = self.number - self._first - recorder.settings.warmup
        return self.warming() or self._has_its_turn(n, _PAIRS, _THEN)

    def _has_its_turn(self, n: int, pairs: int, then: int) -> bool:
        """Whether step n of a window, from 0, is instrumented: the window begins with pairs of both kinds, and then one
        step in then is instrumented."""
        return n % (2 if n < 2 * pairs or self._planned else then) == 0

    # Steps without phases.

    def keep_phases(self) -> None:
        """From now on, also in the present step, every step has phases."""
        self._unphased.keep_phases()
        if recorder.level == COUNTERS:
            thread.close_stale()
            unphased.optimizer = 0
            recorder.set_level(PHASES)
            self.mark_mode()

    def mark_both_ends(self) -> None:
        """From now on, updates in steps without phases also have a mark at their beginning."""
        self._both_ends = True
        unphased.optimizer = 0

    def mark_next_at_end(self, identity: int, number: int) -> None:
        """Lets the next update of the optimizer that has just updated have one mark, at its end, if that suffices."""
        if self._boundary.is_alone(number) and not self._both_ends:
            unphased.number = number
            unphased.optimizer = identity

    def _goes_without_phases(self) -> bool:
        if recorder.level == SILENT or self.warming() or not self._unphased.begins(self.number, self._planned):
            return False
        # A single thread trains, and the agent knows which.
        if self._thread != get_ident() or not thread.trains or runs.threads > 1:
            return False
        return not (thread.calls or any(kind in thread.spans for kind in _UNPHASED_WITHOUT))


def _operand(count: int | None) -> int:
    """Encodes a count for a mark: 0 means unknown, so counts are increased by one. An unusable count of the script
    counts as unknown."""
    try:
        return 0 if count is None else max(0, int(count)) + 1
    except (TypeError, ValueError) as error:
        recorder.spared("a count of dpsight.step()", error)
        return 0


steps = recorder.part(Steps)
