"""Marks the stages of the set-up: calls that put a model on the device, wrap it, make its optimizer and make both
private.

Most stages happen before CUDA is initialised, also in launchers, which must not write a journal. So a stage is marked
only once a journal is open, if necessary in the middle of the stage. Ingest decides which stages count: those before
the first forward pass that trains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.patch import Patches, method
from dpsight.recorder import guarded, in_backward, recorder, stamps, steps, thread

MODEL = "setup.model"
WRAP = "setup.wrap"
OPTIMIZER = "setup.optimizer"
PRIVACY = "setup.privacy"
DATA = "setup.data"

_NOT_INSIDE = (kinds.FORWARD_BEGIN, kinds.OPTIMIZER_BEGIN, kinds.DP_STEP_BEGIN, kinds.PHASE_BEGIN)


def wrap(cls: type, attribute: str, name: str, patches: Patches) -> None:
    """Makes a method of a class a stage, if the class has the method."""
    function = method(cls, attribute)
    if function is not None:
        patches.set(cls, attribute, stage(function, name))


def stage(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Returns the function with marks around it. A call counts as a stage unless it is inside another stage or a phase
    of the script, or happens during training."""
    compiling = recorder.torch.compiler.is_dynamo_compiling

    @functools.wraps(function)
    def staged(*args: Any, **kwargs: Any) -> Any:
        if compiling() or steps.number or thread.stage or not _sets_up():
            return function(*args, **kwargs)
        try:
            _begin(name)
            return function(*args, **kwargs)
        finally:
            _end()

    return staged


@guarded("marking a stage", otherwise=False)
def _sets_up() -> bool:
    return bool(recorder.level) and not in_backward() and not any(kind in thread.spans for kind in _NOT_INSIDE)


@guarded("marking a stage")
def _begin(name: str) -> None:
    thread.begin_stage(name)
    if recorder.journal is not None:
        stamps.stamp(thread.mark_stage())


def mark_late() -> None:
    """Marks the present stage, since the journal was opened in the middle of it."""
    if thread.stage and not thread.stage_number:
        stamps.stamp(thread.mark_stage())


@guarded("marking the end of a stage")
def _end() -> None:
    number = thread.end_stage()
    if number and recorder.level:
        stamps.stamp(recorder.mark(kinds.PHASE_END, kinds.SETUP, number))
