"""What a prediction rests on: the values that the script read without anyone having computed them, the sizes that were
bounds, and what the phantom GPU could not do. Written whole and again whenever it has grown, so that a process that is
killed has said what it had read by its last drain."""

from __future__ import annotations

import sys
from typing import Any

from dpsight import kinds
from dpsight.recorder import events, recorder
from dpsight.torch_compat import INDUCTOR


class Prediction:
    """The facts that were written."""

    def __init__(self) -> None:
        self._written: dict[str, Any] | None = None

    def follow(self, values: Any) -> None:
        """values: what the phantom GPU's module gave when it was installed; None on a real GPU."""
        if values is not None:
            _phantom.append(values)
            if hasattr(values, "grown"):
                values.grown = self._write_between

    def install(self) -> None:
        """Writes at every drain."""
        if _phantom:
            events.counters_written.subscribe(self._write)
            events.process_ends.subscribe(self._write)

    def _write_between(self) -> None:
        """Writes in the midst of a read: a script that waits for a value may reach no drain before it is ended. In a
        thread that is writing a frame it would wait for itself."""
        journal = recorder.journal
        if journal is not None and recorder.level and not journal.busy():
            self._write()

    def _write(self) -> None:
        """Writes what is known by now, unless it is what was written last."""
        try:
            facts = _gather(_phantom[-1])
        except Exception as error:
            recorder.failed("asking the phantom GPU what it guessed", error, fatal=False)
            return
        if facts != self._written:
            self._written = facts
            recorder.frame(kinds.FRAME_PREDICTION, facts)


def _gather(values: Any) -> dict[str, Any]:
    """The facts. Names are values and no keys: only those are masked."""
    return {
        "reads": _counted(values.reads()),
        "guesses": _counted(values.guesses()),
        "assumptions": _counted(values.assumptions() if hasattr(values, "assumptions") else {}),
        "assumed_at": _counted(values.assumed() if hasattr(values, "assumed") else {}),
        "copied": _counted(values.copied() if hasattr(values, "copied") else {}),
        "notes": list(values.notes()),
        # The module that TorchInductor compiles a graph with is imported for the first graph.
        "compiled": INDUCTOR in sys.modules,
    }


def _counted(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": _short(name), "count": counts[name]} for name in sorted(counts)]


def _short(name: str) -> str:
    """The built-in experiments lie in a folder that has another name in each run."""
    before, package, within = name.partition("dpsight_experiments/")
    return package + within if package and before.endswith("/experiments/") else name


_phantom: list[Any] = []  # its module, if there is one
prediction = recorder.part(Prediction)
