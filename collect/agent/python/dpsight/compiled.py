"""Marks of compiled code. Hooks vanish inside what Dynamo has traced, so it is bracketed from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import backward, forward, kinds, optimizers, timing, torch_compat
from dpsight.marks import mark, name
from dpsight.patch import Patches
from dpsight.state import state
from dpsight.steps import steps


def install(patches: Patches) -> None:
    """Wraps torch.compile and nn.Module.compile."""
    torch = state.torch
    patches.set(torch.nn.Module, "compile", _module_compile(torch.nn.Module.compile))
    patches.set(torch, "compile", _compile(torch.compile))


def _module_compile(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(self: Any, *args: Any, **kwargs: Any) -> None:
        # Ours, around the compiled code instead of inside it, keeps out of Dynamo's sight.
        impl = forward.bound_impl(self)
        inner = torch_compat.compile_with(self, impl, lambda: original(self, *args, **kwargs))
        watched = forward.watched(lambda _self, *args, **kwargs: inner(*args, **kwargs))
        torch_compat.set_compiled(self, functools.partial(watched, self))

    return compile


def _compile(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(model: Any = None, **kwargs: Any) -> Any:
        if model is None:
            return lambda m: compile(m, **kwargs)
        result = original(model, **kwargs)
        if result is model or isinstance(result, state.torch.nn.Module) or not callable(result):
            return result  # modules have hooks of their own
        return _region(model, result)

    return compile


def _region(function: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
    owner = getattr(function, "__self__", None)
    is_step = isinstance(owner, state.torch.optim.Optimizer) and function.__name__ == "step"
    optimizer = owner if is_step else None
    label = getattr(function, "__qualname__", type(function).__name__)
    compiling = state.torch.compiler.is_dynamo_compiling

    @functools.wraps(compiled)
    def region(*args: Any, **kwargs: Any) -> Any:
        if compiling() or state.dead:
            return compiled(*args, **kwargs)
        steps.keep_phases()  # an update may have vanished into the region: its backward tells
        number = name(label)
        runs, updates = backward.runs, optimizers.updates
        backward.arrive()
        mark(kinds.COMPILED_BEGIN, kinds.GRAD if state.torch.is_grad_enabled() else 0, number)
        if optimizer is not None:
            optimizers.before(optimizer, args, kwargs)
        try:
            return compiled(*args, **kwargs)
        finally:
            if optimizer is not None:
                optimizers.ended(optimizer)
            k = mark(kinds.COMPILED_END, 0, number)
            if backward.runs > runs and optimizers.updates == updates:
                # A whole step was compiled: its optimizer has vanished into the region.
                timing.stamp(k)
                steps.updated(("compiled", number))

    return region
