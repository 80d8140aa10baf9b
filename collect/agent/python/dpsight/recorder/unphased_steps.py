"""Steps without phases. In a long run of short steps, most bare steps are marked and timed only at their end. Marks and
CUDA events around forward, backward and zero_grad would take several per cent of a step that the host launches in ten
milliseconds, and the other steps already show what each phase takes. All steps have phases if every step is measured on
purpose (by plan()) or recorded, and on a phantom GPU, which has no times. Steps also have phases in scripts with
Opacus, checkpoints, compiled functions, updates in backward or dpsight.step(): there only the runs of backward show the
structure.

Only the training thread skips its marks. The training thread keeps its marks for a model that was called before and is
now called in eval mode and without gradients. Updates are marked in every step, since ingest finds steps by them. If
one optimizer makes all updates, an update has one mark, at its end, which also ends the step: two more would cost as
much as all calls of modules. If something inside a step must be marked, the step's beginning is marked late. A failed
request in such a step has a less complete description: the script's tensors and the graph are found, but not the module
that saved a tensor, or the module in backward.
"""

from __future__ import annotations

import threading

from dpsight.recorder.allocator import drains
from dpsight.recorder.core import recorder
from dpsight.recorder.windows import windows

# Outside windows, one in so many steps of at most this length has phases. In longer steps the cost of phases is not
# noticeable.
SHORT_NS = 25_000_000
_PHASED = 16

# How far a step without phases has come.
NOWHERE = 0
CALLED = 1  # the last event was a module's call
RAN = 2  # the last event was a backward


class Unphased:
    """Tracks how far the step at level COUNTERS has come, and its update if that began without a mark."""

    __slots__ = ("at", "calling", "number", "optimizer", "updating", "updating_thread")

    def __init__(self) -> None:
        self.at = NOWHERE
        self.calling = False  # whether the training thread is inside a module's call
        self.optimizer = 0  # id() of the optimizer that makes all updates with one mark each; 0 = they have two
        self.number = 0  # number of that optimizer, or of the last such optimizer
        self.updating = 0  # id() of the optimizer whose update began without a mark; kept if it raised, until the next
        self.updating_thread = 0  # the thread of that update

    def call_begins(self) -> None:
        """Called when the training thread calls a module. Calls inside that call do not count."""
        self.calling = True

    def call_ended(self) -> None:
        """Called when that call of a module has ended."""
        self.calling, self.at = False, CALLED

    def runs(self) -> None:
        """Called when the training thread runs a backward."""
        self.at = RAN

    def update_begins(self, identity: int) -> bool:
        """Called when an optimizer's update begins. Returns whether the beginning needs no mark: the optimizer makes
        all updates, and this update is inside no other."""
        if self.optimizer != identity or self.updating:
            return False
        self.updating_thread = threading.get_ident()
        self.updating = identity
        return True

    def update_ended(self, identity: int) -> bool:
        """Called when an optimizer's update ends. Returns whether it began without a mark, in this thread."""
        if self.updating != identity or self.updating_thread != threading.get_ident():
            return False
        self.updating = 0
        return True

    def mark_both_ends(self) -> None:
        """The next update, or the running one, has two marks."""
        self.optimizer = 0

    def forget_optimizer(self, identity: int) -> None:
        """Forgets an optimizer that no longer exists, since its id() can be used again."""
        if self.optimizer == identity:
            self.optimizer = 0
        if self.updating == identity:
            self.updating = 0


class UnphasedPolicy:
    """Decides which steps have no phases."""

    __slots__ = ("_needs_phases", "_took_ns", "drain_due_ns", "ended_ns", "until")

    def __init__(self) -> None:
        self._needs_phases = False
        self._took_ns = (1 << 62, 1 << 62)  # times of the last two steps
        self.ended_ns = 0  # when the last step ended
        self.until = 0  # the next step that may have phases
        self.drain_due_ns = 0

    def ended(self, now: int) -> None:
        """Notes that a step ends."""
        self._took_ns, self.ended_ns = (self._took_ns[1], now - self.ended_ns), now

    def keep_phases(self) -> None:
        """From now on every step has phases."""
        self._needs_phases = True

    def begin_again(self) -> None:
        """Begins warm-up again after a new optimizer has updated."""
        self.until = 0

    def goes_on(self, number: int) -> bool:
        """Whether the step with this number has no phases, like the last step, and nothing is to be done before it."""
        return number < self.until and self._short() and not drains.due()

    def begins(self, number: int, planned: bool) -> bool:
        """Whether the step with this number has no phases, by time and by windows."""
        if recorder.settings.source != "measured" or planned or self._needs_phases or not self._short():
            return False
        if drains.recording or windows.holds(number):
            return False
        window = windows.next()  # a window that could not open in time is considered again at a step with phases
        phased = _next_phased(number)
        self.until = min(phased, window) if window > number else phased
        self.drain_due_ns = drains.due_ns()
        return phased != number

    def _short(self) -> bool:
        """Whether steps are short at present. The shorter of the last two steps decides, since one of them may have
        done more than train."""
        return min(self._took_ns) < SHORT_NS


def _next_phased(step: int) -> int:
    """The next step with phases, from this one on. The place of that step varies between groups of steps, since scripts
    do things at every second or sixteenth step."""
    for turn in (step // _PHASED, step // _PHASED + 1):
        phased = turn * _PHASED + turn * 7 % _PHASED
        if phased >= step:
            break
    return phased


unphased = recorder.part(Unphased)
