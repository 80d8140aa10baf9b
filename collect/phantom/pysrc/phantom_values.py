"""Values that a script reads from a phantom GPU.

No kernel computes anything on a phantom GPU, and values steer programs: a read that gives what an earlier tenant of
the memory left takes a branch at random. ``libphantom_values.so`` keeps track of which small tensors have their values
on the device for real: those that came from the host, and what operators make of known ones; their CPU kernels are run
beside the CUDA kernels that do nothing, straight on the phantom device's memory, which is host memory. Then

* a read (``.item()``, ``.cpu()``, ``.tolist()``, ``print``) of anything else gives zeros, and :meth:`Values.reads`
  says where in the script it was; of a floating-point scalar, a loss above all, it gives a value below one that falls
  with each, and comparisons of such scalars go by it, so that loops that watch a loss go on as on a device;
* an operator that reads a count to know how large its output is (``unique``, ``nonzero``, boolean indexing,
  ``repeat_interleave``) gets it: exactly, where its input is known, else as an upper bound, which
  :meth:`Values.guesses` counts, and :meth:`Values.reads` with where it was;
* a question whether values are finite (``isnan``, ``isinf``, ``isfinite``, ``GradScaler``) is answered as for finite
  ones where nobody knows them, which :meth:`Values.assumptions` counts, and :meth:`Values.assumed` where.

This module has what needs Python: the line of the script that is running. Kernels written in Python were rejected: one
leaves a Python object on each tensor that it touches, and autograd then takes no gradient over, which moves peaks.

``install(torch)`` is called once after ``import torch``; it needs no CUDA to be initialised and does not initialise it.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import os
import sys
import threading
from typing import Any

_READ, _BOUND, _EXACT, _ASSUMED = range(4)
"""What the library tells: csrc/values/listener.h."""


class Values:
    """The state of an installed module: what was guessed, what was assumed, and what was read unknown."""

    def __init__(self, torch: Any, phantom: ctypes.CDLL, library: ctypes.CDLL) -> None:
        self._phantom = phantom
        self._library = library
        self._tallies: tuple[collections.Counter[str], ...] = tuple(collections.Counter() for _ in range(4))
        self._asked: collections.Counter[tuple[str, str]] = collections.Counter()
        self._lock = threading.Lock()
        # Code that is not the script's own.
        self._outside = (os.path.dirname(torch.__file__) + os.sep, __file__)
        listener = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)
        self._listener = listener(self._told)
        library.phantom_values_install.argtypes = [listener]
        library.phantom_values_install.restype = None
        library.phantom_values_known.argtypes = [ctypes.c_void_p]
        library.phantom_values_known.restype = ctypes.c_int
        library.phantom_values_forget.argtypes = [ctypes.c_void_p]
        library.phantom_values_forget.restype = None
        library.phantom_values_install(self._listener)
        self._watch_counts(torch.autograd.graph)

    def guesses(self) -> dict[str, int]:
        """How often each operator's size was an upper bound, so far."""
        return self._tally(_BOUND)

    def exact(self) -> dict[str, int]:
        """How often each operator's size was computed from known values, so far."""
        return self._tally(_EXACT)

    def assumptions(self) -> dict[str, int]:
        """How often each operator's question was answered as for finite values, so far."""
        return self._tally(_ASSUMED)

    def assumed(self) -> dict[str, int]:
        """How often such questions were asked at each ``file:line``, so far; one may take several operators."""
        places: dict[str, int] = {}
        with self._lock:
            for (place, _), count in self._asked.items():
                places[place] = max(places.get(place, 0), count)
        return places

    def reads(self) -> dict[str, int]:
        """How often values that nobody knows were read at each ``file:line``, so far."""
        return self._tally(_READ)

    def notes(self) -> list[str]:
        """What the library estimated, refused or left out so far, a sentence each."""
        size = self._phantom.phantom_notes(None, 0) + 1
        text = ctypes.create_string_buffer(size)
        self._phantom.phantom_notes(text, size)
        notes = text.value.decode(errors="replace").splitlines()
        if assumed := self.assumptions():
            notes.append(f"values that nobody knows were taken for finite by {', '.join(sorted(assumed))}")
        return notes

    def is_known(self, tensor: Any) -> bool:
        """Whether the values of a CUDA tensor stand in its memory, and nothing has changed it since."""
        return bool(self._library.phantom_values_known(tensor._cdata))

    def _watch_counts(self, graph: Any) -> None:
        """Forgets what Python tells autograd to be changed: by compiled code and by custom operators.

        The count of changes alone does not show it, since aliases (``x.data``) may have a count each.
        """
        before = graph.increment_version

        @functools.wraps(before)
        def increment_version(tensor: Any) -> None:
            tensors = (tensor,) if hasattr(tensor, "_cdata") else tuple(tensor)
            before(tensors)
            for changed in tensors:
                self._library.phantom_values_forget(changed._cdata)

        graph.increment_version = increment_version

    def _tally(self, told: int) -> dict[str, int]:
        with self._lock:
            return dict(self._tallies[told])

    def _told(self, told: int, name: bytes) -> None:
        place = _site(self._outside) if told in (_READ, _ASSUMED) else ""
        key = place if told == _READ else name.decode()
        with self._lock:
            self._tallies[told][key] += 1
            if told == _ASSUMED:
                self._asked[place, key] += 1


def _site(outside: tuple[str, ...]) -> str:
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(outside):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


_installed: Values | None = None


def install(torch: Any) -> Values | None:
    """Follows values from now on. Gives None, and does nothing, where no phantom GPU is loaded.

    Calling it again gives the state of the first call. Raises ``RuntimeError`` where the library was compiled for
    another torch.
    """
    global _installed
    if _installed is not None:
        return _installed
    path = os.environ.get("PHANTOM_VALUES")
    if not sys.platform.startswith("linux") or not path:
        return None
    process = ctypes.CDLL(None)
    if not hasattr(process, "phantom_answer"):
        return None
    process.phantom_notes.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    process.phantom_notes.restype = ctypes.c_size_t
    library = ctypes.CDLL(path)
    library.phantom_values_torch.restype = ctypes.c_char_p
    made_for = library.phantom_values_torch().decode()
    if made_for != torch.__version__:
        raise RuntimeError(f"the phantom GPU was compiled for torch {made_for}, and this is {torch.__version__}")
    _installed = Values(torch, process, library)
    return _installed
