"""Windows: the steps whose allocator events are recorded. The first window lasts DPSIGHT_RECORD_STEPS steps. In a
longer run short windows follow, at steps 200, 400, 800 …. Later windows show what changes late in training, and the
recording grows only with the logarithm of the run's length. Windows at a fixed distance would let a run of a million
steps fill the disk.

A later window opens only if its drains take little enough time. The first window always lasts as long as requested,
however long its drains take. If time ended it, the slower of two runs of one script would lack steps, and perhaps the
peak, and a prediction would have no counterpart. The results state what the drains cost. A user for whom that is too
much can request fewer steps (--record-steps)."""

from __future__ import annotations

import sys
import time

from dpsight.recorder.allocator import drains
from dpsight.recorder.core import recorder

_EARLIEST = 200  # a later window begins at this step or after: runs of a hundred steps have one window
_MOST_DRAINING = 0.05  # share of wall time that drains may take


class Windows:
    """Decides, as each step begins, whether it is recorded."""

    def __init__(self) -> None:
        steps = recorder.settings.record_steps
        self.begin = 0  # first step of the latest window
        self.end = steps  # first step after it
        self._due = max(_EARLIEST, 2 * steps)
        self._steps = steps  # number of steps in all windows so far
        self._began_ns = time.monotonic_ns()

    def again(self) -> bool:
        """Whether another window may follow."""
        return recorder.settings.window_steps > 0 and not recorder.settings.bare

    def holds(self, step: int) -> bool:
        """Whether a step is recorded."""
        return self.begin <= step < self.end

    def next(self) -> int:
        """The first step at which the next window may begin."""
        return self._due if self.again() else sys.maxsize

    def advance(self, step: int) -> None:
        """Called when a step begins. Opens a window if it is time and its drains take little enough time."""
        if step < self._due or not self.again() or not drains.can_resume() or not self._affordable():
            return
        steps = recorder.settings.window_steps
        self.begin, self.end = step, step + steps
        self._steps += steps
        self._due = max(2 * step, self.end)

    def _affordable(self) -> bool:
        """Whether all drains, including those of another window, would stay below their share of wall time. The phantom
        GPU has no times, so there only the number of steps decides."""
        if recorder.settings.source != "measured":
            return True
        each = drains.spent_ns / max(1, self._steps)
        passed = time.monotonic_ns() - self._began_ns
        return drains.spent_ns + each * recorder.settings.window_steps <= _MOST_DRAINING * passed


windows = recorder.part(Windows)
