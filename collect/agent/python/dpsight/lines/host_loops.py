"""Loops of the script that work on the host. Following a line takes a microsecond, which is much if the lines
themselves take less. Lines that are reached again and again while nothing asks for memory are skipped until
something asks for some.

On a GPU only fast lines are skipped, since time counts there. In a prediction, equal runs must skip the same
lines.
"""

from __future__ import annotations

import time

from dpsight.recorder import recorder
from dpsight.torch_compat import private

_WINDOW = 1 << 10  # lines
_FAST_NS = 5_000  # a line takes less than this, on average
_OFTEN = 4  # in a window: a loop of up to 256 lines is passed over


class HostLoops:
    """Which lines are skipped. After a window of lines without a request, the next window is counted line by line.
    Lines that were reached often in it are skipped, if it had no request either."""

    def __init__(self) -> None:
        self.counts: dict[str, int] | None = None  # how often each line was reached in this window; None = not counted
        self.lines: set[str] = set()  # to be passed over when they are reached next
        self.passed = False  # some are passed over
        self.window_ends = 0  # by count of lines
        self._began_ns = 0
        self._asked = 0  # requests until the window began

    def begin(self) -> None:
        """None is passed over."""
        self.counts = None
        self.lines.clear()
        self.passed = False

    def end_window(self, count: int) -> None:
        """So many lines were reported in all."""
        now, asked = time.monotonic_ns(), _requests()
        fast = recorder.settings.source != "measured" or now - self._began_ns < _WINDOW * _FAST_NS
        idle = fast and asked == self._asked
        if idle and self.counts is not None:
            self.lines.update(line for line, times in self.counts.items() if times >= _OFTEN)
        self.counts = {} if idle else None
        self.window_ends, self._began_ns, self._asked = count + _WINDOW, now, asked

    def idle(self) -> bool:
        """Whether nothing has asked for memory since this window began, which takes as long as ten lines to know."""
        return _requests() == self._asked


def _requests() -> int:
    """How often memory was asked for, on all devices."""
    devices = range(recorder.torch.cuda.device_count())
    return sum(private.memory_stats(device)["allocation"]["all"]["allocated"] for device in devices)


loops = recorder.part(HostLoops)
