"""Marks of module calls: torch's Module._call_impl, through which every call goes, runs between ours. A stack per
thread tells the outermost call from the rest.

Global hooks were rejected: one is enough to send every call of every module down torch's slow path, two microseconds a
call in steps that record none of them; compiled code guards on their handles; they miss keyword arguments and what is
no Exception.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from dpsight import allocator, backward, given, kinds, modules, saved, tags, timing
from dpsight.marks import mark
from dpsight.patch import Patches
from dpsight.state import CALLED, Call, failed, local, state
from dpsight.tensors import needs_grad
from dpsight.torch_compat import CALL

_serial = itertools.count(1).__next__
_ident = threading.get_ident
_call_code: CodeType | None = None  # frames of this code are module calls
_impl: Callable[..., Any]  # torch's own
# torch's, looked up once: these run cold, once a step, where each look-up in a large module would show.
_grad_enabled: Callable[[], bool]
_inference: Callable[[], bool]
_GraphModule: type


def install(patches: Patches) -> None:
    """Takes the place of Module._call_impl."""
    global _impl, _call_code, _grad_enabled, _inference, _GraphModule
    torch = state.torch
    _grad_enabled, _inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
    _GraphModule = torch.fx.GraphModule
    module = torch.nn.Module
    _impl = getattr(module, CALL)
    ours = watched(_impl)
    _call_code = ours.__code__
    patches.set(module, CALL, functools.wraps(_impl)(ours))


def watched(impl: Callable[..., Any]) -> Any:
    """A function that calls a module, the first of its arguments, with the marks of that call."""
    compiling = state.torch.compiler.is_dynamo_compiling  # a function that Dynamo folds to True while it traces ours

    # Every call of a bare step passes here: with a parameter of its own for the module, and keywords where there are
    # none, passing would take twice as long.
    def _call_impl(*args: Any, **kwargs: Any) -> Any:
        if compiling():
            passes = True
        elif state.unphased and state.unphased == _ident():
            passes = state.calling
            if not passes and args and not _evaluates(args[0]):
                try:
                    state.calling = state.active = True
                    return impl(*args, **kwargs) if kwargs else impl(*args)
                finally:
                    state.calling, state.passed = False, CALLED
        else:
            passes = state.dead or (local.calls and not state.instrumented)
        if passes or not args:
            return impl(*args, **kwargs) if kwargs else impl(*args)
        out = None
        try:
            _begins(args[0], args[1:], kwargs)
            out = impl(*args, **kwargs)
            return out
        finally:
            _ended(args[0], kwargs, out)

    return _call_impl


def _evaluates(module: Any) -> bool:
    """Whether a call in a step without phases is marked all the same: an evaluation's. One that trains in eval mode, or
    is a part of a call, is none."""
    if getattr(module, "training", True) or state.dead or not modules.is_root(module):
        return False
    return not (local.calls or _grad_enabled() or _within())


def _within() -> bool:
    """Whether the call that asks was made inside another."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and frame.f_code is not _call_code:
        frame = frame.f_back
    return frame is not None


def bound_impl(module: Any) -> Any:
    """The _call_impl that a module would have without ours: torch's, or what its class has in place of it."""
    own = getattr(type(module), CALL)
    return (_impl if own is getattr(state.torch.nn.Module, CALL) else own).__get__(module)


def _begins(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
    try:
        calls = local.calls
        if not calls:
            _outermost(module, args)
            return
        number = modules.number(module, outermost=False)
        serial = _serial()
        timing.module_stamp(mark(kinds.MODULE_BEGIN, 0, number))
        # A recompute runs on another thread, which counts nodes for itself.
        first = 0 if backward.running() else saved.enter(number)
        backward.watch_inputs(args, kwargs, serial)
        calls.append((id(module), number, serial, first))
    except Exception as error:
        failed("the forward hook", error)


def _outermost(module: Any, args: Any) -> None:
    if state.updating:
        from dpsight import optimizers

        optimizers.mark_begin()
    in_backward = backward.running()
    number = modules.number(module, outermost=True)
    flags = kinds.GRAD if _grad_enabled() else 0
    flags |= kinds.TRAINING if module.training else 0
    flags |= kinds.INFERENCE if _inference() else 0
    flags |= kinds.IN_BACKWARD if in_backward else 0
    flags |= kinds.GRAPH_MODULE if isinstance(module, _GraphModule) else 0
    flags |= kinds.FAKE if backward.fake() else 0
    state.active = True
    serial = _serial() if state.instrumented else 0
    if in_backward:
        backward.arrive()
    k = mark(kinds.FORWARD_BEGIN, flags, number)
    first = 0
    if not in_backward:
        first = saved.enter(number) if state.instrumented else saved.now()
    local.calls.append((id(module), number, serial, first))
    if in_backward:
        timing.module_stamp(k)
        return
    timing.stamp(k)
    allocator.check()
    if not state.cuda:
        return
    if state.instrumented:
        tags.emit(tags.within(kinds.INPUT, args) + modules.tag_once(module))
    elif state.tagging:
        given.remember(kinds.INPUT, args)


def _ended(module: Any, kwargs: dict[str, Any], out: Any) -> None:
    """Runs after each call that began with marks. out is None if it raised."""
    if state.dead:
        return
    try:
        calls, key = local.calls, id(module)
        if not any(c[0] == key for c in calls):
            return  # repaired before
        while calls[-1][0] != key:
            calls.pop()  # an interrupt came while we were marking its end
        if len(calls) == 1:
            _outermost_ended(module, kwargs, out, calls)
            return
        call = calls.pop()
        if not state.instrumented:
            return  # a step has ended inside the call
        timing.module_stamp(mark(kinds.MODULE_END, 0, call[1]))
        if not backward.running():
            saved.enter(calls[-1][1])
        backward.watch_outputs(out, call, calls)
    except Exception as error:
        failed("the forward hook", error)


def _outermost_ended(module: Any, kwargs: dict[str, Any], out: Any, calls: list[Call]) -> None:
    in_backward = backward.running()
    call = calls[0]
    flags = kinds.GRAD if _grad_enabled() else 0
    flags |= kinds.TRAINING if module.training else 0
    flags |= kinds.IN_BACKWARD if in_backward else 0
    flags |= kinds.DIFFERENTIABLE if needs_grad(out) else 0
    k = mark(kinds.FORWARD_END, flags, call[1])
    calls.clear()
    if in_backward:
        timing.module_stamp(k)
        return
    timing.stamp(k)
    if state.instrumented:
        saved.enter(0)
        if call[2]:  # no step has ended inside
            saved.learn(call[1], call[3])
        backward.watch_outputs(out, call, calls)
        if state.cuda:
            # Keyword arguments are all that Hugging Face's models are given.
            tags.emit(tags.within(kinds.INPUT, kwargs) + tags.within(kinds.OUTPUT, out))
    elif state.tagging and state.cuda:
        saved.repeated(call[1], call[3])
        if kwargs:
            given.remember(kinds.INPUT, kwargs)
    if state.tagging and state.cuda:
        given.remember(kinds.OUTPUT, out)


def is_call(code: CodeType) -> bool:
    """Whether frames of this code are module calls, with the module as the first of their variable args."""
    return code is _call_code


def repair() -> None:
    """Shortens the stack to the calls that are alive: an interrupt that the script catches may have come while we were
    marking the end of one."""
    frame: FrameType | None = sys._getframe(1)
    alive = 0
    while frame is not None:
        alive += frame.f_code is _call_code
        frame = frame.f_back
    calls = local.calls
    if not alive and calls:
        number = calls[0][1]
        calls.clear()
        mark(kinds.FORWARD_END, kinds.REPAIRED, number)
    elif len(calls) > alive:
        del calls[alive:]
