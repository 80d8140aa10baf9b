"""A moment in which no other thread of Python allocates on the device or frees there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dpsight.recorder.core import recorder

_LONG = 60.0  # s, between two unrequested changes of thread


class Freeze:
    """Which threads are inside freeze_threads(), and what the script had set before."""

    def __init__(self) -> None:
        self._inside: list[None] = []  # one for each thread
        self._usual = (0.005, True)  # how often threads change, and whether garbage is collected

    @contextmanager
    def threads(self) -> Iterator[None]:
        """No other thread is given the interpreter's lock that does not find it free: most then wait at their next
        line. And no garbage is collected: tensors may be among it."""
        usual = sys.getswitchinterval(), gc.isenabled()
        if not self._inside and usual[0] < _LONG:  # the last of several threads restores the script's value
            self._usual = usual
        self._inside.append(None)
        try:
            sys.setswitchinterval(_LONG)
            gc.disable()
            yield
        finally:
            self._inside.pop()
            if not self._inside:
                self._thaw()

    def _thaw(self) -> None:
        sys.setswitchinterval(self._usual[0])
        if self._usual[1]:
            gc.enable()

    def abandon(self) -> None:
        """The thread that would have given it back is the parent's."""
        if self._inside:
            self._thaw()


_freeze = recorder.part(Freeze)
freeze_threads = _freeze.threads
