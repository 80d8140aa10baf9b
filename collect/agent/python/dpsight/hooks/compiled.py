"""Marks of compiled code. Hooks vanish inside code that Dynamo has traced, so it is bracketed from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.patch import Patches
from dpsight.recorder import codes, events, guarded, recorder, runs, stamps, step_limit, steps, thread


def install(patches: Patches) -> None:
    """Wraps torch.compile. Module.compile, whose calls go another way, is forward's."""
    patches.set(recorder.torch, "compile", _compile(recorder.torch.compile))


def _compile(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(model: Any = None, **kwargs: Any) -> Any:
        if model is None:
            return lambda m: compile(m, **kwargs)
        result = original(model, **kwargs)
        if result is model or isinstance(result, recorder.torch.nn.Module) or not callable(result):
            return result  # modules have hooks of their own
        return _region(model, result)

    return compile


def _region(function: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
    owner = getattr(function, "__self__", None)
    is_step = isinstance(owner, recorder.torch.optim.Optimizer) and function.__name__ == "step"
    run = _step(owner, compiled) if is_step else compiled
    label = getattr(function, "__qualname__", type(function).__name__)
    compiling = recorder.torch.compiler.is_dynamo_compiling

    @functools.wraps(compiled)
    def region(*args: Any, **kwargs: Any) -> Any:
        if compiling() or not recorder.level:
            return compiled(*args, **kwargs)
        runs_before, updates_before = runs.count, steps.updates
        _begins(label)
        try:
            out = run(*args, **kwargs)
        finally:
            _ended(label, runs_before, updates_before)
        step_limit.leave()
        return out

    return region


@guarded("the hook of compiled code", opens=(kinds.COMPILED_BEGIN,))
def _begins(label: str) -> None:
    steps.keep_phases()  # an update may have vanished into the region: its backward tells
    grad = kinds.GRAD if recorder.torch.is_grad_enabled() else 0
    thread.begin(kinds.COMPILED_BEGIN, grad, recorder.name(label))


@guarded("the hook of compiled code", opens=(kinds.COMPILED_BEGIN,))
def _ended(label: str, runs_before: int, updates_before: int) -> None:
    number = recorder.name(label)
    k = thread.end(kinds.COMPILED_BEGIN, 0, number)
    if runs.count > runs_before and steps.updates == updates_before:
        # A whole step was compiled: its optimizer has vanished into the region.
        stamps.stamp(k)
        steps.updated(("compiled", number))


def _step(optimizer: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled step with the marks of an update. While its frame is there, the update is alive."""

    def step(*args: Any, **kwargs: Any) -> Any:
        events.compiled_update_begins.tell(optimizer)
        try:
            out = compiled(*args, **kwargs)
        finally:
            events.compiled_update_ended.tell(optimizer)
        step_limit.leave()
        return out

    codes.know(compiled_step=step.__code__)
    return step
