"""Waits for NCCL's watchdog thread in predictions. The watchdog looks at collectives ten times a second, and only then
releases what a finished collective used. DDP makes its buckets again in the second forward. Whether the first buckets
still exist then depends on timing, also on a real device. A prediction waits for the watchdog, so that equal runs have
equal peaks, and states how many more bytes there may be."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from dpsight.recorder import events, guarded, recorder
from dpsight.recorder.counters import total_allocated
from dpsight.torch_compat import WATCHDOGS

_PAUSE = 0.01  # s between two looks at the watchdogs
_SLEEPS = 3  # sleeps of each watchdog: a look may have begun before the wait
_PATIENCE = 5.0  # s
_CALLS = 8  # calls of a reducer that wait: it makes its buckets again after the first backward that averages


class Watchdog:
    """Counts the bytes of buckets that DDP's reducers make again, beside which the watchdog may still hold the first
    buckets."""

    def __init__(self) -> None:
        self._calls: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._before = 0  # bytes allocated before the present call
        self._beside = 0  # the most bytes that were made again at once

    def install(self) -> None:
        """Arranges that the first calls of each reducer wait."""
        events.buckets_due.subscribe(self._due)
        events.buckets_made.subscribe(self._made)

    def notes(self) -> list[str]:
        """Notes, as sentences, on what the prediction cannot know."""
        if not self._beside:
            return []
        return [
            "NCCL: a GPU may still hold DDP's first buckets when the second forward replaces them; its peak is then up "
            f"to {self._beside / 2**20:,.2f} MiB higher than the prediction"
        ]

    @guarded("waiting for NCCL's watchdog")
    def _due(self, reducer: Any) -> None:
        calls = self._calls[reducer] = self._calls.get(reducer, 0) + 1
        if recorder.cuda and 1 < calls <= _CALLS:
            _wait()
            self._before = total_allocated()

    @guarded("waiting for NCCL's watchdog")
    def _made(self, reducer: Any) -> None:
        if recorder.cuda and 1 < self._calls.get(reducer, 0) <= _CALLS and any(_watchdogs()):
            self._beside = max(self._beside, total_allocated() - self._before)
        self._calls[reducer] = _CALLS


def _wait() -> None:
    """Waits until each watchdog has looked at its collectives."""
    until = time.monotonic() + _PATIENCE
    before = {task: _sleeps(task) for task in _watchdogs()}
    while before and time.monotonic() < until:
        time.sleep(_PAUSE)
        before = {task: n for task, n in before.items() if 0 <= _sleeps(task) < n + _SLEEPS}


def _watchdogs() -> Iterator[str]:
    """The folders of the watchdog threads in /proc."""
    for task in os.listdir("/proc/self/task"):
        if _read(f"/proc/self/task/{task}/comm").startswith(WATCHDOGS):
            yield f"/proc/self/task/{task}"


def _sleeps(task: str) -> int:
    """The number of times that a thread has gone to sleep; -1 if it has ended."""
    _, found, rest = _read(f"{task}/status").partition("\nvoluntary_ctxt_switches:")
    return int(rest.split()[0]) if found else -1


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:  # the thread has ended meanwhile
        return ""


watchdog = recorder.part(Watchdog)
