"""Ends a prediction. The first steps of a training of days show its memory, so the script is ended between two steps.
An exception is raised after an optimizer's update, so its finally blocks and exit handlers run. Ranks end after the
same step, since a single one would leave the others waiting."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
import weakref
from typing import Any

from dpsight import kinds
from dpsight.recorder import events
from dpsight.recorder.allocator import drains
from dpsight.recorder.core import recorder
from dpsight.recorder.counters import devices
from dpsight.recorder.policy import steps
from dpsight.recorder.spans import in_backward, thread
from dpsight.torch_compat import private

AUTO = "auto"
FLAT = 3  # steps in which nothing may have risen
LONG_S = 60  # seconds after the first update for which an evaluation is awaited

# Reasons for the end.
ASKED = "asked"  # the user requested this number of steps
EVALUATED = "evaluated"  # memory has stopped rising, and an evaluation was seen
LONG = "long"  # memory has stopped rising, and no evaluation came in time

_MOST_RAISED = 10  # a script that catches this many of these exceptions is ended by force
_PATIENCE_S = 60  # a script that has not ended after this time is ended by force too
_UPDATES = (kinds.OPTIMIZER_BEGIN, kinds.DP_STEP_BEGIN, kinds.SCALER_BEGIN)


class Ended(SystemExit):
    """Ends the script without a traceback. Ended is no subclass of Exception, since training loops catch every
    Exception."""


class StepLimit:
    """Decides after which step the script ends."""

    __slots__ = ("_end", "_evaluated", "_first_s", "_highest", "_raised", "_risen", "_trained", "due", "facts")

    def __init__(self) -> None:
        self.due = False  # whether the script is to end as soon as no update is running
        self.facts: dict[str, Any] | None = None  # after which step the script ended, and why
        self._first_s = 0.0  # the time at which the first step ended
        self._highest: dict[int, tuple[int, int]] = {}  # by device: the highest bytes allocated and reserved
        self._risen = 0  # the last step in which these rose
        self._evaluated = False  # whether an evaluation was seen since the first update
        # id() of the first parameter of each module that was trained → weak reference: addresses are used again.
        self._trained: dict[int, weakref.ref[Any]] = {}
        self._end = 0  # the step on which the ranks agreed; 0 = none yet
        self._raised = 0

    def install(self) -> None:
        """Follows the steps, if the collector has set a limit."""
        if recorder.settings.steps:
            events.step_ended.subscribe(self._step_ended)
        if recorder.settings.steps == AUTO:
            events.model_called.subscribe(self._model_called)

    def _step_ended(self, number: int) -> None:
        """number: how many steps have ended."""
        if self.facts is not None:  # the script has caught the exception that was to end it
            self.due = True
            return
        if recorder.settings.steps != AUTO:
            if recorder.settings.steps.isdecimal() and number >= int(recorder.settings.steps):
                self._ends(number, ASKED)
        elif not steps.planned() and steps.updates:
            settled = self._settled(number)
            if self._agreed(number, settled):
                self._ends(number, EVALUATED if self._evaluated else LONG)

    def _ends(self, number: int, why: str) -> None:
        passed = time.monotonic() - (self._first_s or time.monotonic())
        self.facts = {"step": number, "why": why, "flat": max(0, number - self._risen), "seconds": int(passed)}
        self.due = True

    def _settled(self, number: int) -> bool:
        """Whether this process has probably reached its highest memory. Reserved memory counts too, since it decides
        whether a run fits."""
        now = time.monotonic()
        if not self._first_s:
            self._first_s = now
        for device in devices.seen:
            stats = private.memory_stats(device)
            held = stats["allocated_bytes"]["all"]["peak"], stats["reserved_bytes"]["all"]["peak"]
            before = self._highest.get(device, (0, 0))
            if held[0] > before[0] or held[1] > before[1]:  # compared, since a script may have reset torch's counters
                self._highest[device] = max(held[0], before[0]), max(held[1], before[1])
                self._risen = number
        self._risen = self._risen or number
        return number - self._risen >= FLAT and (self._evaluated or now - self._first_s >= LONG_S)

    def _model_called(self, module: Any, _args: Any) -> None:
        """Detects an evaluation: a trained model is called in eval mode and without gradients. A teacher, or a
        generator that makes samples for its discriminator, does not count."""
        first = next(iter(module.parameters()), None)
        if first is None:
            return
        if recorder.torch.is_grad_enabled():
            self._trained[id(first)] = weakref.ref(first)
        elif steps.updates and not module.training:
            known = self._trained.get(id(first))
            self._evaluated = self._evaluated or (known is not None and known() is first)

    def _agreed(self, number: int, settled: bool) -> bool:
        """Returns whether the script ends after this step. Each rank writes its step into a file. Once all ranks have
        settled, they end after the step that follows the last step of the furthest rank, since no rank can have passed
        it."""
        ranks, path = _ranks(), recorder.settings.agreement
        if ranks < 2 or not path:
            return settled
        if not self._end:
            with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                said = json.loads(file.read() or '{"ranks": {}, "end": 0}')
                said["ranks"][str(recorder.pid)] = [number, settled]
                told = said["ranks"].values()
                if not said["end"] and len(told) >= ranks and all(done for _, done in told):
                    said["end"] = 1 + max(reached for reached, _ in told)
                self._end = said["end"]
                file.seek(0)
                file.truncate()
                json.dump(said, file)
        return bool(self._end) and number >= self._end

    def leave(self) -> None:
        """Ends the script, if it is time. leave is called after an update has ended and everything about the update is
        recorded."""
        if not self.due or in_backward() or any(thread.inside(kind) for kind in _UPDATES):
            return
        self.due = False
        self._raised += 1
        if self._raised == 1:
            drains.drain("step")  # so that a script that is ended by force has everything on disk
            timer = threading.Timer(_PATIENCE_S, _end_by_force, [recorder.pid])
            timer.daemon = True
            timer.start()
        elif self._raised > _MOST_RAISED:
            os._exit(0)
        raise Ended(0)


def _end_by_force(pid: int) -> None:
    """Ends a process that continues, for example because its training runs in a thread that the main thread does not
    wait for."""
    if os.getpid() == pid:
        sys.stderr.write(f"dpsight: the script did not end within {_PATIENCE_S} s: dpsight ends it by force\n")
        os._exit(0)


def _ranks() -> int:
    """The number of processes of this run that train together."""
    if recorder.settings.ranks:
        return recorder.settings.ranks
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    launched = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(launched) if launched.isdecimal() else 1


step_limit = recorder.part(StepLimit)
