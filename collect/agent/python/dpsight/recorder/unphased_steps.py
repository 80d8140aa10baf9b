"""Steps without phases. In a long run of short steps, most bare steps are marked and timed only at their end. Marks
and CUDA events around forward, backward and zero_grad would take several per cent of a step that the host
launches in ten milliseconds, and the other steps already show what each phase takes. All steps have phases if
every step is measured on purpose (by plan()) or recorded, and on a phantom GPU, which has no times. So do all
steps of scripts with Opacus, checkpoints, compiled functions, updates in backward or dpsight.step(): there only
the runs of backward show the structure.

Only the training thread skips its marks. It keeps them for a model that was called on its own before and is in
eval mode without gradients. Updates are marked in every step, since ingest finds steps by them. If one optimizer
makes all updates, an update has one mark, at its end, which also ends the step: two more would cost as much as
all calls of modules. If something inside a step must be marked, the step's beginning is marked late. A request
that fails in such a step is described less well. The script's tensors and the graph are found. The module that
saved a tensor and the module in backward are not.
"""

from __future__ import annotations

import threading

from dpsight.recorder.allocator import drains
from dpsight.recorder.core import recorder
from dpsight.recorder.windows import windows

# Of steps this short, outside the windows, one in so many has phases. In longer steps the cost of phases is not
# noticeable.
SHORT_NS = 25_000_000
_PHASED = 16

# How far such a step is.
NOWHERE = 0
CALLED = 1  # a module was called last
RAN = 2  # backward ran last


class Unphased:
    """How far the step at level COUNTERS is, and its update if that began without a mark."""

    __slots__ = ("at", "calling", "number", "optimizer", "updating", "updating_thread")

    def __init__(self) -> None:
        self.at = NOWHERE
        self.calling = False  # its thread is inside a module's call
        self.optimizer = 0  # id() of the optimizer that makes all updates, each with one mark; 0 = updates have two
        self.number = 0  # of that optimizer, or of the one that did so last
        self.updating = 0  # id() of the optimizer whose update has begun so; stays if it raised, until the next
        self.updating_thread = 0  # in which it began

    def call_begins(self) -> None:
        """A module is called. What it calls is part of it."""
        self.calling = True

    def call_ended(self) -> None:
        """The call is over."""
        self.calling, self.at = False, CALLED

    def runs(self) -> None:
        """Backward runs."""
        self.at = RAN

    def update_begins(self, identity: int) -> bool:
        """An optimizer's update begins. Returns whether it goes without a mark: the optimizer makes all updates,
        and this one is inside no other."""
        if self.optimizer != identity or self.updating:
            return False
        self.updating_thread = threading.get_ident()
        self.updating = identity
        return True

    def update_ended(self, identity: int) -> bool:
        """An optimizer's update ends. Returns whether it began without a mark, in this thread."""
        if self.updating != identity or self.updating_thread != threading.get_ident():
            return False
        self.updating = 0
        return True

    def mark_both_ends(self) -> None:
        """The update that is next, or under way, has two marks."""
        self.optimizer = 0

    def forget_optimizer(self, identity: int) -> None:
        """An optimizer is gone, and its id() is free for another."""
        if self.optimizer == identity:
            self.optimizer = 0
        if self.updating == identity:
            self.updating = 0


class UnphasedPolicy:
    """When steps go without phases."""

    __slots__ = ("_needs_phases", "_took_ns", "drain_due_ns", "ended_ns", "until")

    def __init__(self) -> None:
        self._needs_phases = False
        self._took_ns = (1 << 62, 1 << 62)  # the last two steps
        self.ended_ns = 0  # when the last one ended
        self.until = 0  # the next step that may be another than one without phases
        self.drain_due_ns = 0

    def ended(self, now: int) -> None:
        """A step ends."""
        self._took_ns, self.ended_ns = (self._took_ns[1], now - self.ended_ns), now

    def keep_phases(self) -> None:
        """From here on no step goes without."""
        self._needs_phases = True

    def begin_again(self) -> None:
        """A new optimizer has updated: warm-up begins again."""
        self.until = 0

    def goes_on(self, number: int) -> bool:
        """Whether the step of this number is one without phases as the last was, and nothing is to be done before
        it."""
        return number < self.until and self._short() and not drains.due()

    def begins(self, number: int, planned: bool) -> bool:
        """Whether the step of this number has no phases, according to time and windows."""
        if recorder.settings.source != "measured" or planned or self._needs_phases or not self._short():
            return False
        if drains.recording or windows.holds(number):
            return False
        window = windows.next()  # one that was not opened when it was time is thought of again when a step has phases
        phased = _next_phased(number)
        self.until = min(phased, window) if window > number else phased
        self.drain_due_ns = drains.due_ns()
        return phased != number

    def _short(self) -> bool:
        """Whether steps are short. The shorter of the last two decides, since one of them may have done more than
        train."""
        return min(self._took_ns) < SHORT_NS


def _next_phased(step: int) -> int:
    """The next step with phases, from this one on. It lies at a different place in each group of steps, since
    scripts do things every second or sixteenth step."""
    for turn in (step // _PHASED, step // _PHASED + 1):
        phased = turn * _PHASED + turn * 7 % _PHASED
        if phased >= step:
            break
    return phased


unphased = recorder.part(Unphased)
