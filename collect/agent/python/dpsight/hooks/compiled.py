"""Marks calls of compiled code. Hooks do not run inside code that Dynamo has traced, so marks stand around it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.patch import Patches
from dpsight.recorder import codes, events, guarded, recorder, runs, stamps, step_limit, steps, thread


def install(patches: Patches) -> None:
    """Wraps torch.compile. forward.py wraps Module.compile."""
    patches.set(recorder.torch, "compile", _compile(recorder.torch.compile))


def _compile(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(model: Any = None, **kwargs: Any) -> Any:
        if model is None:
            return lambda m: compile(m, **kwargs)
        result = original(model, **kwargs)
        if result is model or isinstance(result, recorder.torch.nn.Module) or not callable(result):
            return result  # compiled modules are marked by forward.py
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
    steps.keep_phases()  # the compiled code may contain an update: only a marked run of backward shows that
    grad = kinds.GRAD if recorder.torch.is_grad_enabled() else 0
    thread.begin(kinds.COMPILED_BEGIN, grad, recorder.name(label))


@guarded("the hook of compiled code", opens=(kinds.COMPILED_BEGIN,))
def _ended(label: str, runs_before: int, updates_before: int) -> None:
    number = recorder.name(label)
    k = thread.end(kinds.COMPILED_BEGIN, 0, number)
    if runs.count > runs_before and steps.updates == updates_before:
        # The compiled code contains a whole step, whose optimizer runs without hooks.
        stamps.stamp(k)
        steps.updated(("compiled", number))


def _step(optimizer: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an optimizer's compiled step with the marks of an update around it. While this function's frame exists,
    the update is running."""

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
