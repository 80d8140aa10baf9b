"""Looks at everything that the script holds, between its lines: graphs that no backward has reached, and tensors that
only variables keep. Hooks see neither of these: a script calls no hooks if its model is no module, or if it evaluates
with gradients on.

A look takes milliseconds, so it happens only when memory has grown or changed since the last one. On a GPU looks
are limited to a share of the time. In a prediction they depend on lines and bytes, so that equal runs are looked
at alike.
"""

from __future__ import annotations

import time

from dpsight import kinds
from dpsight.holders.frames import alone
from dpsight.holders.keepers import keepers
from dpsight.holders.look import tag
from dpsight.interruptions import uninterrupted
from dpsight.lines.script_lines import lines
from dpsight.recorder import drains, events, guarded, in_backward, recorder, thread
from dpsight.tensors import living
from dpsight.torch_compat import private

_LEAST = 1 << 20  # bytes on the device from which on a look is made
_MORE = 1.02  # ratio to the most bytes that a look has seen
_OTHER = 0.25  # share of the bytes requested since the last look, times the squared number of looks without growth
_KEPT = 2  # ratio to the bytes at the last look for holders, which takes longer and also happens at exit
_SHARE, _FREE_NS = 0.01, 50_000_000  # share of a GPU run's time for looks, and time that they may always take
_ASKING = 30  # one part of the time goes to reading the memory in use, which takes as long as 30 lines
_OFTEN = 2_000  # lines at which a prediction reads the memory; then it does at every second line, and so on


class Surveys:
    """Decides when to look at the script's tensors, and remembers what the last looks saw."""

    def __init__(self) -> None:
        self._began_ns = 0
        self._spent_ns = 0
        self._ask_at_ns = 0
        self._asked = 0
        self._repeated = 0  # looks that found no more memory than an earlier one
        self._most = 0  # the most bytes that a look has seen
        self._keepers_saw = 0  # bytes at the last look for holders
        self._asked_for = 0  # bytes requested until the last look

    def install(self) -> None:
        """Subscribes to lines."""
        if not recorder.settings.like_a_gpu:
            events.line_reached.subscribe(self._line_reached)

    @guarded("looking at what the script holds")
    def _line_reached(self) -> None:
        # A pass is looked at after it has ended: marks tell more about it while it runs.
        if not drains.recording or in_backward() or thread.calls:
            return
        if recorder.settings.every_step:
            if self._is_due():
                self._look(every=alone())  # other threads may release what they hold while we look
            self._asked += 1
            lines.pass_over(self._asked // _OFTEN)
            return
        now = time.monotonic_ns()
        self._began_ns = self._began_ns or now
        if now < self._ask_at_ns or self._spent_ns > _FREE_NS + _SHARE * (now - self._began_ns):
            return
        due, asked = self._is_due(), time.monotonic_ns()
        self._ask_at_ns = asked + _ASKING * (asked - now)
        if due:
            self._look(every=False)
            self._spent_ns += time.monotonic_ns() - asked

    def _is_due(self) -> bool:
        stats = private.memory_stats(private.current_device())["allocated_bytes"]["all"]
        held, asked_for = stats["current"], stats["allocated"]
        more = held >= _MORE * self._most
        other = asked_for - self._asked_for >= _OTHER * held * (1 + self._repeated) ** 2
        if held < _LEAST or not more and not other:
            return False
        self._repeated += not more
        self._most, self._asked_for = max(self._most, held), asked_for
        return True

    def _look(self, every: bool) -> None:
        """Looks at the script's tensors. every: also at tensors that no name leads to. An interrupt meanwhile would put
        all these tensors into its traceback."""
        with uninterrupted:
            tensors = living() if every else None
            recorder.mark(kinds.SURVEY, a=tag(True, tensors))
            if self._most >= _KEPT * self._keepers_saw:
                self._keepers_saw = self._most
                keepers.look("survey", tensors)


surveys = recorder.part(Surveys)
