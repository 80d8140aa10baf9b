"""What a prediction rests on: the values that the script read without anyone having computed them, the sizes that were
bounds, and what the phantom GPU could not do. Written whole and again whenever it has grown, so that a process that is
killed has said what it had read by its last drain."""

from __future__ import annotations

import sys
from typing import Any

from dpsight import kinds, marks
from dpsight.marks import frame
from dpsight.state import failed, state
from dpsight.torch_compat import INDUCTOR

_values: Any = None
_written: dict[str, Any] | None = None


def follow(values: Any) -> None:
    """values: what the phantom GPU's module gave when it was installed; None on a real GPU."""
    global _values
    _values = values
    if hasattr(values, "grown"):
        values.grown = _write_between


def _write_between() -> None:
    """Writes in the midst of a read: a script that waits for a value may reach no drain before it is ended. In a thread
    that is writing a frame it would wait for itself."""
    journal = marks.journal
    if journal is not None and not state.dead and not journal.busy():
        write()


def write() -> None:
    """Writes what is known by now, unless it is what was written last."""
    global _written
    if _values is None:
        return
    try:
        facts = gather()
    except Exception as error:
        failed("asking the phantom GPU what it guessed", error, fatal=False)
        return
    if facts != _written:
        _written = facts
        frame(kinds.FRAME_PREDICTION, facts)


def gather() -> dict[str, Any]:
    """The facts. Names are values and no keys: only those are masked."""
    return {
        "reads": _counted(_values.reads()),
        "guesses": _counted(_values.guesses()),
        "assumptions": _counted(_values.assumptions() if hasattr(_values, "assumptions") else {}),
        "assumed_at": _counted(_values.assumed() if hasattr(_values, "assumed") else {}),
        "copied": _counted(_values.copied() if hasattr(_values, "copied") else {}),
        "notes": list(_values.notes()),
        # The module that TorchInductor compiles a graph with is imported for the first graph.
        "compiled": INDUCTOR in sys.modules,
    }


def _counted(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": _short(name), "count": counts[name]} for name in sorted(counts)]


def _short(name: str) -> str:
    """The built-in experiments lie in a folder that has another name in each run."""
    before, package, within = name.partition("dpsight_experiments/")
    return package + within if package and before.endswith("/experiments/") else name


def after_fork() -> None:
    """A child has a journal of its own."""
    global _written
    _written = None
