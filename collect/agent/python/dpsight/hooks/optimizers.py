"""Marks calls of optimizers: step and zero_grad, and of GradScaler. An update of the parameters ends a training
step."""

from __future__ import annotations

import sys
from typing import Any

from dpsight import kinds
from dpsight.patch import Patches, bracket, method
from dpsight.recorder import (
    TAGS,
    codes,
    events,
    guarded,
    in_backward,
    recorder,
    runs,
    stamps,
    step_limit,
    steps,
    thread,
    unphased,
)
from dpsight.registry import registry
from dpsight.torch_compat import private, step_code


def install(patches: Patches) -> None:
    """Hooks every torch optimizer."""
    torch = recorder.torch
    compiling = torch.compiler.is_dynamo_compiling
    module = sys.modules["torch.optim.optimizer"]  # torch.optim deletes its attribute `optimizer`
    cls = module.Optimizer
    codes.know(step=step_code(cls))

    def before(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not compiling():
            _update_begins(optimizer)

    def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not compiling():
            _update_ended(optimizer)
            step_limit.leave()

    patches.hook(module.register_optimizer_step_pre_hook(before))
    patches.hook(module.register_optimizer_step_post_hook(after))

    events.compiled_update_begins.subscribe(_update_begins)
    events.compiled_update_ended.subscribe(_update_ended)

    zero = cls.zero_grad
    inner = getattr(zero, "__wrapped__", None)  # torch keeps zero_grad out of Dynamo, and so must its replacement
    wrapped = bracket(inner or zero, kinds.ZERO_GRAD_BEGIN, 0, phase=True)
    patches.set(cls, "zero_grad", private.disable_dynamo(wrapped) if inner else wrapped)
    modules = torch.nn.Module
    patches.set(modules, "zero_grad", bracket(modules.zero_grad, kinds.ZERO_GRAD_BEGIN, 1, phase=True))

    scaler = torch.amp.GradScaler
    for attribute, number in (("step", 0), ("update", 1)):
        function = method(scaler, attribute)
        if function is not None:
            around = (_scaler_begins, _scaler_ended) if number == 0 else (None, None)
            patches.set(scaler, attribute, bracket(function, kinds.SCALER_BEGIN, number, *around))


@guarded("the optimizer hook", opens=(kinds.OPTIMIZER_BEGIN,))
def _update_begins(optimizer: Any) -> None:
    """Called when an optimizer's step begins."""
    if not recorder.level:
        return
    without = recorder.without_phases()
    if without and not thread.initializes and not in_backward() and unphased.update_begins(id(optimizer)):
        return
    _mark_begin(optimizer, without)


def _mark_begin(optimizer: Any, without_phases: bool) -> None:
    thread.close_stale(own=1)
    if without_phases:
        unphased.mark_both_ends()
    nested = thread.inside(kinds.OPTIMIZER_BEGIN)
    if nested:
        steps.mark_both_ends()  # one mark would not tell which of two updates is inside the other
    inside_backward = in_backward()
    flags = kinds.NESTED if nested else 0
    flags |= kinds.IN_BACKWARD if inside_backward else 0
    flags |= kinds.INITIALIZES if thread.initializes else 0
    if not thread.initializes:
        steps.trains()
    k = thread.begin(kinds.OPTIMIZER_BEGIN, flags, registry.optimizer(optimizer), own=1)
    if not inside_backward:
        stamps.stamp(k)
    if recorder.level >= TAGS:
        events.update_begins.tell(optimizer)


@guarded("the optimizer hook", opens=(kinds.OPTIMIZER_BEGIN,))
def _update_ended(optimizer: Any) -> None:
    """Called when an optimizer's step has ended. Of running steps it is the innermost."""
    if not recorder.level:
        return
    initializes = thread.initializes
    if not initializes:
        steps.count_update()
    identity = id(optimizer)
    if unphased.update_ended(identity):
        if unphased.optimizer == identity and steps.updated_alone():
            return
        number = registry.optimizer(optimizer)
        stamps.stamp(recorder.mark(kinds.UPDATED, 0, number))
        _updated(optimizer, number)
        return
    thread.leave(kinds.OPTIMIZER_BEGIN)
    inside_backward = in_backward()
    if recorder.level >= TAGS:
        events.update_ended.tell(optimizer)
    nested = thread.inside(kinds.OPTIMIZER_BEGIN)
    flags = kinds.NESTED if nested else 0
    flags |= kinds.IN_BACKWARD if inside_backward else 0
    flags |= kinds.INITIALIZES if initializes else 0
    number = registry.optimizer(optimizer)
    k = recorder.mark(kinds.OPTIMIZER_END, flags, number)
    if inside_backward:
        runs.update_inside()
        steps.keep_phases()  # only the marked run around such an update shows it
        return
    stamps.stamp(k)
    if nested or initializes:
        return
    if thread.inside(kinds.DP_STEP_BEGIN) or thread.inside(kinds.SCALER_BEGIN):
        thread.note_update(number)
    else:
        _updated(optimizer, number)


def _updated(optimizer: Any, number: int) -> None:
    steps.updated(number)
    if codes.step is not None and recorder.without_phases():
        steps.mark_next_at_end(id(optimizer), number)


def _scaler_begins(_args: tuple[Any, ...]) -> None:
    steps.mark_both_ends()
    thread.note_update(0)


@guarded("the scaler hook", otherwise=(0, 0))
def _scaler_ended(args: tuple[Any, ...]) -> tuple[int, int]:
    """Returns the flags, and the optimizer whose step ends with GradScaler's step. GradScaler skips the optimizer if
    gradients are infinite. That ends a training step too, since its data were used."""
    if thread.inside(kinds.SCALER_BEGIN) or thread.inside(kinds.DP_STEP_BEGIN):
        return 0, 0
    return 0, thread.updated or (registry.optimizer(args[1]) if len(args) > 1 else 0)
