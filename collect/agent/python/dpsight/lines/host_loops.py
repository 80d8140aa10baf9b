"""Loops of the script that work on the host. Following a line takes a microsecond, which is much if the lines
themselves take less. Lines that are reached again and again while nothing requests memory are skipped until memory is
requested.

On a GPU only fast lines are skipped, since time counts there. In a prediction the time does not decide, so that equal
runs skip the same lines.
"""

from __future__ import annotations

import time

from dpsight.recorder import recorder
from dpsight.torch_compat import private

_WINDOW = 1 << 10  # number of lines in a window
_FAST_NS = 5_000  # lines are fast if they take less than this on average
_OFTEN = 4  # times that a line is reached in a window, so that a loop of up to 256 lines is skipped


class HostLoops:
    """Decides which lines are skipped. After a window of lines without a request, the next window is counted line by
    line. Lines that were reached often in it are skipped, if that window had no request either."""

    def __init__(self) -> None:
        self.counts: dict[str, int] | None = None  # by line: how often it was reached in the window; None = not counted
        self.lines: set[str] = set()  # lines to skip when they are reached next
        self.passed = False  # whether some lines are skipped
        self.window_ends = 0  # the count of lines at which the window ends
        self._began_ns = 0
        self._asked = 0  # requests before the window began

    def begin(self) -> None:
        """Begins without skipped lines."""
        self.counts = None
        self.lines.clear()
        self.passed = False

    def end_window(self, count: int) -> None:
        """Ends a window. count: lines reported so far."""
        now, asked = time.monotonic_ns(), _requests()
        fast = recorder.settings.source != "measured" or now - self._began_ns < _WINDOW * _FAST_NS
        idle = fast and asked == self._asked
        if idle and self.counts is not None:
            self.lines.update(line for line, times in self.counts.items() if times >= _OFTEN)
        self.counts = {} if idle else None
        self.window_ends, self._began_ns, self._asked = count + _WINDOW, now, asked

    def idle(self) -> bool:
        """Whether nothing has requested memory since this window began. Finding that out takes as long as ten lines."""
        return _requests() == self._asked


def _requests() -> int:
    """The number of requests for memory so far, on all devices."""
    devices = range(recorder.torch.cuda.device_count())
    return sum(private.memory_stats(device)["allocation"]["all"]["allocated"] for device in devices)


loops = recorder.part(HostLoops)
