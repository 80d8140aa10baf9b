"""Makes a moment in which no other Python thread allocates or frees device memory."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dpsight.recorder.core import recorder

_LONG = 60.0  # s between two forced switches of threads


class Freeze:
    """The threads that are inside freeze_threads(), and the script's own settings."""

    def __init__(self) -> None:
        self._inside: list[None] = []  # one entry for each such thread
        self._usual = (0.005, True)  # the interval between switches of threads, and whether garbage is collected

    @contextmanager
    def threads(self) -> Iterator[None]:
        """A context in which the interpreter's lock is not passed on to another thread by force. Most threads then wait
        at their next line. No garbage is collected either, since it may contain tensors."""
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
        """Called in a forked child. abandon restores the settings, since the thread that would restore them exists only
        in the parent."""
        if self._inside:
            self._thaw()


_freeze = recorder.part(Freeze)
freeze_threads = _freeze.threads
