"""Records what a prediction depends on: unknown values that the script read, sizes that were only bounds, and what the
phantom GPU could not do. All facts are written together, again whenever there are new ones, so that the journal of a
killed process has the facts up to its last drain."""

from __future__ import annotations

import functools
import os
import sys
import time
from types import FrameType, TracebackType
from typing import Any

from dpsight import kinds
from dpsight.garbage import garbage
from dpsight.patch import Patches
from dpsight.recorder import events, guarded, recorder, step_limit
from dpsight.torch_compat import ENGINE, ENGINE_THREADS, inductor_ran
from dpsight.watchdog import watchdog

_PAUSE = 100e-6  # seconds between two looks at autograd's threads
_LOOKS = 100  # most looks after each run


class Phantom:
    """The phantom GPU's Python module. A forked child keeps it, since it can be loaded only once."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: Any = None  # None on a real GPU


_phantom = Phantom()


class Prediction:
    """Keeps the facts about the prediction that were written last."""

    def __init__(self) -> None:
        self._written: dict[str, Any] | None = None
        # Reads that may be why the script fails; None while no failure was seen.
        self._suspects: list[str] | None = None

    def follow(self, values: Any) -> None:
        """values: the object that the phantom GPU's module returned when it was installed; None on a real GPU."""
        if values is not None:
            _phantom.values = values
            if hasattr(values, "grown"):
                values.grown = self._write_between

    def install(self, patches: Patches) -> None:
        """Arranges that facts are written at every drain."""
        if _phantom.values is not None:
            _settle_runs(patches)
            watchdog.install()
            garbage.install()  # before the facts are written at the end
            step_limit.install()
            if hasattr(_phantom.values, "suspects"):
                events.uncaught.subscribe(self._suspect)
                self._watch_exits(patches)
            events.counters_written.subscribe(self._write)
            events.process_ends.subscribe(self._write)

    def _suspect(self, traceback: Any) -> None:
        """Notes the latest reads, since the script is failing."""
        self._suspects = _phantom.values.suspects(traceback)

    def _why(self) -> list[str]:
        """The reads that may be why the script failed. A ``raise SystemExit`` cannot be observed, so all reads count if
        the script failed without an observed failure."""
        if self._suspects is not None:
            return self._suspects
        return _phantom.values.exits() if hasattr(_phantom.values, "exits") else []

    def _watch_exits(self, patches: Patches) -> None:
        """Observes sys.exit and os._exit: a script also fails if it catches an error, or finds a value out of range,
        and exits with a status."""
        leave = sys.exit

        @functools.wraps(leave)
        def exit(*status: Any) -> None:
            if status and status[0]:
                self._exits()
            leave(*status)

        exit.__module__ = "sys"  # so that unpickling finds it
        patches.set(sys, "exit", exit)

    @guarded("asking the phantom GPU why the script exits")
    def _exits(self) -> None:
        error = sys.exc_info()[1]
        self._suspect(_calls() if error is None else error.__traceback__)

    def _write_between(self) -> None:
        """Writes during a read, since a script that waits for a value may not reach a drain before it is ended. A
        thread that is writing a frame does not, since it would wait for itself."""
        journal = recorder.journal
        if journal is not None and recorder.level and not journal.busy():
            self._write()

    def _write(self) -> None:
        """Writes all known facts, if they differ from what was written last."""
        try:
            facts = {**_gather(_phantom.values), "suspects": self._why()}
        except Exception as error:
            recorder.hook_failed("asking the phantom GPU what it guessed", error)
            return
        if facts != self._written:
            self._written = facts
            recorder.frame(kinds.FRAME_PREDICTION, facts)


def _gather(values: Any) -> dict[str, Any]:
    """Collects the facts. Names are values and not keys, since only values are masked."""
    return {
        "reads": _counted(values.reads()),
        "guesses": _counted(values.guesses()),
        "assumptions": _counted(values.assumptions() if hasattr(values, "assumptions") else {}),
        "assumed_at": _counted(values.assumed() if hasattr(values, "assumed") else {}),
        "copied": _counted(values.copied() if hasattr(values, "copied") else {}),
        "notes": [*values.notes(), *watchdog.notes()],
        # TorchInductor imports this module when it compiles its first graph.
        "compiled": inductor_ran(),
        "garbage": garbage.facts(),
        "ended": step_limit.facts,
    }


def _calls() -> TracebackType | None:
    """The running calls of the script, in the form of a traceback."""
    calls: TracebackType | None = None
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        calls = TracebackType(calls, frame, max(frame.f_lasti, 0), frame.f_lineno)
        frame = frame.f_back
    return calls


def _counted(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": _short(name), "count": counts[name]} for name in sorted(counts)]


def _short(name: str) -> str:
    """Shortens the path of a built-in experiment, whose folder has another name in each run."""
    before, package, within = name.partition("dpsight_experiments/")
    return package + within if package and before.endswith("/experiments/") else name


def _settle_runs(patches: Patches) -> None:
    """Makes each run of autograd wait until its threads sleep. Autograd's threads release a run's graph after the run
    has returned. On the phantom GPU, whose kernels take no time, that could be after the next forward, so equal runs
    would have different peaks."""
    variable = recorder.torch.autograd.variable.Variable
    base = type(getattr(variable, ENGINE))

    class Settled(base):  # type: ignore[misc, valid-type]
        def run_backward(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().run_backward(*args, **kwargs)
            finally:
                _wait_for_engine()

    patches.set(variable, ENGINE, Settled())


@guarded("waiting for autograd's threads")
def _wait_for_engine() -> None:
    """Waits until autograd's threads sleep in two consecutive looks, or until the last look."""
    if not recorder.cuda:
        return
    rested = 0
    for _ in range(_LOOKS):
        time.sleep(_PAUSE)
        rested = rested + 1 if _engine_rests() else 0
        if rested == 2:
            return


def _engine_rests() -> bool:
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/stat", encoding="ascii", errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name.startswith(ENGINE_THREADS) and rest.split()[0] != "S":
                return False
    except OSError:  # the thread has ended meanwhile
        return False
    return True


prediction = recorder.part(Prediction)
