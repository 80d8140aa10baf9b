"""Steps as the agent sees them while they happen, to choose when it drains and how much it records. The exact steps
of a run are determined offline, from all marks."""

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

# An instrumented step of a few milliseconds takes up to twice as long as a bare one. This many pairs of both show
# what recording costs and where memory is. In a longer window one instrumented step in so many shows whether that
# changes. Later windows are short and should show what is new, so they have more instrumented steps.
_PAIRS = 10
_THEN = 32
_LATER = 8
_UNPHASED_WITHOUT = (kinds.BACKWARD_BEGIN, kinds.DP_STEP_BEGIN, kinds.SCALER_BEGIN, kinds.OPTIMIZER_BEGIN)


class Steps:
    """Counts steps. A step ends when its boundary optimizer has updated, or where the script says so."""

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
        self.updates = 0  # of any optimizer so far
        self.trained = False  # something trained since the last step's end
        self._lines = False  # whether the script's lines are followed
        self._boundary = Boundary()
        self._unphased = unphased_steps.UnphasedPolicy()
        self._explicit = False  # the script itself calls dpsight.step()
        self._planned = False  # it has said how many of its steps are to be timed
        self._initialized: set[Hashable] = set()  # optimizers whose first update came before anything ran backward
        self._first = 0  # warm-up is counted from this step
        self._thread = 0  # that ended the last step
        self._both_ends = False  # updates have two marks always

    def trains(self) -> None:
        """Something trains."""
        self.trained = True

    def count_update(self) -> None:
        """An update of any optimizer has ended."""
        self.updates += 1

    # Ends of steps.

    def updated(self, key: Hashable) -> None:
        """An update of the optimizer of this number has ended."""
        if self._explicit or (self.number == runs.count == 0 and self._only_initializes(key)):
            return
        if self._boundary.is_new(key):
            self._first = self.number
            self._unphased.begin_again()
        if self._boundary.ends_step(key, self.warming()):
            self.end(stamped=True)

    def _only_initializes(self, key: Hashable) -> bool:
        """Whether an update before anything ran backward only makes the optimizer's state, as far as is known: the
        first of each optimizer does. A second one tells that the script makes gradients by other means, and that the
        first was a step, too."""
        if key not in self._initialized:
            self._initialized.add(key)
            return True
        recorder.mark(kinds.STEP_END, 0, self.number)
        self.number += 1
        return False

    def updated_alone(self) -> bool:
        """The only optimizer has updated, in a step without phases. If there is nothing to do before the next step,
        one mark says so and ends this one, and True is returned. All of this runs rarely, once a step, so each
        line counts.
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
        # Without plan() the update just before the first call has ended the step already.
        if self.trained or self.number == 0:
            self.end()

    def planned(self) -> bool:
        """Whether the script has said how many steps will come."""
        return self._planned

    def plan(self, warmup: int, timed: int) -> None:
        """dpsight.plan(): this many steps will come, and dpsight.step() will end each."""
        self._explicit = self._planned = True
        recorder.settings.warmup = warmup
        recorder.frame(kinds.FRAME_PLAN, {"warmup": warmup, "timed": timed})
        self.choose_mode()

    def end(self, stamped: bool = False) -> None:
        """Ends a step and begins the next without interruption: otherwise a step could lack its beginning. stamped:
        an event was recorded a moment ago, and nothing ran on the device since. Two consecutive steps without
        phases have one mark between them."""
        ident = get_ident()
        self._unphased.ended(time.monotonic_ns())
        stamped = stamped and recorder.level != COUNTERS
        if ident == self._thread == recorder.unphased_thread and self._unphased.goes_on(self.number + 1):
            stamps.step(recorder.mark(kinds.STEP_END, 0, self.number))
            self.number += 1
            self.trained, unphased.calling, unphased.at = False, False, NOWHERE
            return
        with uninterrupted:
            count = drains.count  # before the mark, which may drain on request
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
            if drains.count != count:  # the time in which the agent drained is left out
                stamps.step(k)

    def _between(self) -> None:
        """Does the work between two steps. In a bare step only its beginning and end are recorded. The level is set
        first, so that nothing is walked for nothing."""
        windows.advance(self.number)
        self._choose_level()
        events.step_ended.tell(self.number)
        recorded = drains.recording
        if drains.between_steps(self.number, windows):
            self.choose_mode()  # tags are bound in what is recorded only
        # Beyond the windows nothing is tagged, and every call would be in the times of bare steps.
        events.step_begins.tell(self.number, recorded or drains.recording)

    # The level.

    def choose_mode(self) -> None:
        """Chooses the level that holds from here on, and marks it."""
        self._choose_level()
        self.mark_mode()

    def mark_mode(self) -> None:
        """Marks the level that holds."""
        flags = kinds.INSTRUMENTED if recorder.level >= MODULES else 0
        flags |= kinds.WARMUP if self.warming() else 0
        flags |= kinds.RECORDING if drains.recording else 0
        flags |= kinds.UNPHASED if recorder.level == COUNTERS else 0
        flags |= kinds.LINES if self._lines else 0
        recorder.mark(kinds.MODE, flags)

    def follows_lines(self, on: bool) -> None:
        """The lines of the script are followed from here on, or no longer: the next mark of the level says so."""
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
        """Warm-up steps are instrumented. Then instrumented and bare steps alternate for a while: published times
        come from bare ones, and the difference is the cost of recording. Later most steps are bare, since the
        few instrumented ones show what they allocate. If a plan counts the bare ones, they alternate to its end.
        Without a recording all steps are bare."""
        if not windows.holds(self.number):
            return False
        if recorder.settings.every_step:
            return True
        if windows.begin:
            return self._has_its_turn(self.number - windows.begin, 0, _LATER)
        n = self.number - self._first - recorder.settings.warmup
        return self.warming() or self._has_its_turn(n, _PAIRS, _THEN)

    def _has_its_turn(self, n: int, pairs: int, then: int) -> bool:
        """Whether the nth step of a window, from 0, is instrumented, if so many pairs begin it and then one in so
        many is."""
        return n % (2 if n < 2 * pairs or self._planned else then) == 0

    # Steps without phases.

    def keep_phases(self) -> None:
        """From here on, in this step too, nothing goes without its phases."""
        self._unphased.keep_phases()
        if recorder.level == COUNTERS:
            thread.close_stale()
            unphased.optimizer = 0
            recorder.set_level(PHASES)
            self.mark_mode()

    def mark_both_ends(self) -> None:
        """From here on, updates in steps without phases are also marked where they begin."""
        self._both_ends = True
        unphased.optimizer = 0

    def mark_next_at_end(self, identity: int, number: int) -> None:
        """Has the next update of the optimizer that has just updated marked at its end only, if that tells all."""
        if self._boundary.is_alone(number) and not self._both_ends:
            unphased.number = number
            unphased.optimizer = identity

    def _goes_without_phases(self) -> bool:
        if recorder.level == SILENT or self.warming() or not self._unphased.begins(self.number, self._planned):
            return False
        # One thread trains, and the agent knows it.
        if self._thread != get_ident() or not thread.trains or runs.threads > 1:
            return False
        return not (thread.calls or any(kind in thread.spans for kind in _UNPHASED_WITHOUT))


def _operand(count: int | None) -> int:
    """0 means unknown, so counts are one higher. The step ends even if the script's count is unusable."""
    try:
        return 0 if count is None else max(0, int(count)) + 1
    except (TypeError, ValueError) as error:
        recorder.spared("a count of dpsight.step()", error)
        return 0


steps = recorder.part(Steps)
