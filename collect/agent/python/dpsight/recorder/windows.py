"""Windows: the steps whose allocator events are recorded. The first window lasts DPSIGHT_RECORD_STEPS steps. In a
longer run short windows follow, at steps 200, 400, 800 …. They show what changes late in training, and the
recording grows only with the logarithm of the run's length. Windows at a fixed distance would let a run of a
million steps fill the disk.

A later window opens only if its drains are affordable. The first window always lasts as long as requested,
whatever its drains cost. If it ended by the clock, the slower of two runs of one script would lack steps, and
perhaps the peak, that the other has, and a prediction would lack what it is compared with. The results state
what the drains cost. If that is too much, the user can ask for fewer steps (--record-steps)."""

from __future__ import annotations

import sys
import time

from dpsight.recorder.allocator import drains
from dpsight.recorder.core import recorder

_EARLIEST = 200  # no step before this one begins a later window: runs of a hundred steps are recorded once
_MOST_DRAINING = 0.05  # of wall time


class Windows:
    """Which steps are recorded, decided as each begins."""

    def __init__(self) -> None:
        steps = recorder.settings.record_steps
        self.begin = 0  # first step of the latest window
        self.end = steps  # first step beyond it
        self._due = max(_EARLIEST, 2 * steps)
        self._steps = steps  # in all windows so far
        self._began_ns = time.monotonic_ns()

    def again(self) -> bool:
        """Whether another window may come."""
        return recorder.settings.window_steps > 0 and not recorder.settings.bare

    def holds(self, step: int) -> bool:
        """Whether a step is recorded."""
        return self.begin <= step < self.end

    def next(self) -> int:
        """The step that may begin the next window; before it none does."""
        return self._due if self.again() else sys.maxsize

    def advance(self, step: int) -> None:
        """A step begins, and with it a window, if it is time and its drains are affordable."""
        if step < self._due or not self.again() or not drains.can_resume() or not self._affordable():
            return
        steps = recorder.settings.window_steps
        self.begin, self.end = step, step + steps
        self._steps += steps
        self._due = max(2 * step, self.end)

    def _affordable(self) -> bool:
        """Whether all drains, including those of another window, stay below their share of wall time. A phantom GPU
        has no times, so there only the number of steps decides."""
        if recorder.settings.source != "measured":
            return True
        each = drains.spent_ns / max(1, self._steps)
        passed = time.monotonic_ns() - self._began_ns
        return drains.spent_ns + each * recorder.settings.window_steps <= _MOST_DRAINING * passed


windows = recorder.part(Windows)
