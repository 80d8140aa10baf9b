"""Marks of module calls. A global hook sees every call; a stack per thread tells the outermost from the rest."""

from __future__ import annotations

import itertools
import sys
from types import FrameType
from typing import Any

from dpsight import allocator, backward, kinds, modules, saved, tags, timing
from dpsight.marks import mark
from dpsight.patch import Patches
from dpsight.state import failed, local, state
from dpsight.tensors import needs_grad

_serial = itertools.count(1).__next__
_compiling: Any = None  # a global function, which Dynamo folds to True while it traces a hook
_call_codes: set[Any] = set()  # code objects whose live frames are module calls


def install(patches: Patches) -> None:
    """Registers the hooks, once and for good: code compiled by Dynamo guards on their handles."""
    global _compiling
    _compiling = state.torch.compiler.is_dynamo_compiling
    module = state.torch.nn.modules.module
    _call_codes.add(module.Module._call_impl.__code__)
    patches.hook(module.register_module_forward_pre_hook(before))
    patches.hook(module.register_module_forward_hook(after, always_call=True))
    if hasattr(module, "_has_any_global_hook"):
        # Its one reader is OptimizedModule.__call__, which would warn of our hooks.
        patches.set(module, "_has_any_global_hook", lambda: _foreign_hooks(module))


def counts_as_call(function: Any) -> None:
    """Frames of this function are module calls too."""
    _call_codes.add(function.__code__)


def _foreign_hooks(module: Any) -> bool:
    return bool(
        len(module._global_forward_pre_hooks) > 1
        or len(module._global_forward_hooks) > 1
        or module._global_backward_pre_hooks
        or module._global_backward_hooks
        or module._global_forward_hooks_with_kwargs
    )


def before(module: Any, args: Any) -> None:
    """Runs before each module call."""
    if _compiling():
        return
    if state.dead:
        return
    try:
        calls = local.calls
        if calls:
            if calls[0][0] == id(module):
                repair(own=1)  # the outermost module again: are we really inside it?
            elif not state.instrumented:
                return
        if not calls:
            _outermost(module, args)
        elif state.instrumented:
            number = modules.number(module, outermost=False)
            serial = _serial()
            mark(kinds.MODULE_BEGIN, 0, number)
            if not backward.running():
                saved.enter(number)  # a recompute runs on another thread, which counts nodes for itself
            backward.watch_inputs(args, serial)
            calls.append((id(module), number, serial))
    except Exception as error:
        failed("the forward hook", error)


def _outermost(module: Any, args: Any) -> None:
    torch, in_backward = state.torch, backward.running()
    number = modules.number(module, outermost=True)
    flags = kinds.GRAD if torch.is_grad_enabled() else 0
    flags |= kinds.TRAINING if module.training else 0
    flags |= kinds.INFERENCE if torch.is_inference_mode_enabled() else 0
    flags |= kinds.IN_BACKWARD if in_backward else 0
    flags |= kinds.GRAPH_MODULE if isinstance(module, torch.fx.GraphModule) else 0
    flags |= kinds.FAKE if backward.fake() else 0
    state.active = True
    serial = _serial() if state.instrumented else 0
    k = mark(kinds.FORWARD_BEGIN, flags, number)
    local.calls.append((id(module), number, serial))
    if in_backward:
        return
    timing.stamp(k)
    allocator.check()
    if state.instrumented:
        saved.enter(number)
        if state.cuda:
            tags.emit(tags.within(kinds.INPUT, args) + modules.tag_once(module))


def after(module: Any, args: Any, out: Any) -> None:
    """Runs after each module call, also when it raised."""
    if _compiling():
        return
    if state.dead:
        return
    try:
        calls = local.calls
        if not calls:
            return  # repaired before
        key = id(module)
        if not state.instrumented:
            if calls[0][0] == key:
                _outermost_ended(module, out, calls)
            return
        if not any(c[0] == key for c in calls):
            return  # began in a bare step
        while calls[-1][0] != key:
            calls.pop()  # left by an exception that passed no hook
        if len(calls) == 1:
            _outermost_ended(module, out, calls)
            return
        _, number, serial = calls.pop()
        mark(kinds.MODULE_END, 0, number)
        if not backward.running():
            saved.enter(calls[-1][1])
        backward.watch_outputs(out, number, serial, calls)
    except Exception as error:
        failed("the forward hook", error)


def _outermost_ended(module: Any, out: Any, calls: list[tuple[int, int, int]]) -> None:
    torch, in_backward = state.torch, backward.running()
    _, number, serial = calls[0]
    calls.clear()
    flags = kinds.GRAD if torch.is_grad_enabled() else 0
    flags |= kinds.TRAINING if module.training else 0
    flags |= kinds.IN_BACKWARD if in_backward else 0
    flags |= kinds.DIFFERENTIABLE if needs_grad(out) else 0
    k = mark(kinds.FORWARD_END, flags, number)
    if in_backward:
        return
    timing.stamp(k)
    if state.instrumented:
        saved.enter(0)
        backward.watch_outputs(out, number, serial, calls)
        if state.cuda:
            tags.emit(tags.within(kinds.OUTPUT, out))


def repair(own: int = 0) -> None:
    """Shortens the stack to the calls that are alive.

    torch runs always_call hooks for Exception alone: a KeyboardInterrupt that the script catches leaves us too deep.
    own frames belong to a call that is not on the stack yet.
    """
    frame: FrameType | None = sys._getframe(1)
    alive = -own
    while frame is not None:
        alive += frame.f_code in _call_codes
        frame = frame.f_back
    calls = local.calls
    if alive <= 0 and calls:
        number = calls[0][1]
        calls.clear()
        mark(kinds.FORWARD_END, kinds.REPAIRED, number)
    elif len(calls) > alive:
        del calls[alive:]
