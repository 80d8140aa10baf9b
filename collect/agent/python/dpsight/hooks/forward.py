"""Marks calls of modules. Every call of a module goes through one function of torch, which this file's function wraps.
A stack for each thread distinguishes the outermost call from calls inside it.

torch's global hooks are unsuitable. A single global hook makes every call of every module take torch's slow path, two
microseconds a call, even in steps that record no calls. Compiled code guards on the handles of global hooks. Global
hooks do not get keyword arguments, and do not run if a call raises something other than an Exception.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from dpsight import kinds
from dpsight.nodes import nodes
from dpsight.patch import Patches
from dpsight.recorder import (
    MODULES,
    Call,
    calling,
    codes,
    drains,
    events,
    guarded,
    in_backward,
    recorder,
    stamps,
    steps,
    thread,
    unphased,
)
from dpsight.registry import registry
from dpsight.tensors import needs_grad, quiet
from dpsight.torch_compat import CALL, compile_with, private, set_compiled

_serial = itertools.count(1).__next__
_frame = sys._getframe


class Torch:
    """torch's functions, looked up once: they are called about once a step, and each time a look-up in a large module
    would be noticeable."""

    __slots__ = ("GraphModule", "grad_enabled", "impl", "inference")

    grad_enabled: Callable[[], bool]
    inference: Callable[[], bool]
    GraphModule: type
    impl: Callable[..., Any]  # torch's function, which the agent's function replaces


_torch = Torch()


def install(patches: Patches) -> None:
    """Replaces torch's function that calls modules."""
    torch = recorder.torch
    module = torch.nn.Module
    _torch.grad_enabled, _torch.inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
    _torch.GraphModule = torch.fx.GraphModule
    _torch.impl = getattr(module, CALL)
    ours = watched(_torch.impl)
    codes.know(call=ours.__code__)
    patches.set(module, CALL, functools.wraps(_torch.impl)(ours))
    patches.set(module, "compile", _compile(module.compile))


def watched(impl: Callable[..., Any]) -> Any:
    """Returns a function that calls the module in its first argument, with marks around the call."""
    compiling = recorder.torch.compiler.is_dynamo_compiling  # Dynamo takes its result for True while it traces

    # In a bare step every call of a module runs this function. With a separate parameter for the module, and with
    # keywords passed even if there are none, it would be twice as slow.
    def _call_impl(*args: Any, **kwargs: Any) -> Any:
        if compiling():
            passes = True
        elif recorder.without_phases():
            passes = unphased.calling
            if not passes and args and not _evaluates(args[0]):
                try:
                    unphased.call_begins()
                    steps.trains()
                    return impl(*args, **kwargs) if kwargs else impl(*args)
                finally:
                    unphased.call_ended()
        else:
            level = recorder.level
            passes = not level or (level < MODULES and thread.calls)
        if passes or not args or (not thread.calls and _is_traced()):
            return impl(*args, **kwargs) if kwargs else impl(*args)
        out = None
        try:
            _begins(id(_frame()), args[0], args[1:], kwargs)
            out = impl(*args, **kwargs)
            return out
        finally:
            if recorder.level:
                _ended(id(_frame()), args, kwargs, out)

    return _call_impl


@guarded("the forward hook", otherwise=True, opens=(kinds.FORWARD_BEGIN,))
def _is_traced() -> bool:
    return private.traces()


@guarded("the forward hook", otherwise=False, opens=(kinds.FORWARD_BEGIN,))
def _evaluates(module: Any) -> bool:
    """Whether a call is an evaluation, which is marked even in a step without phases. A call that trains in eval mode,
    or that is part of another call, is no evaluation."""
    if getattr(module, "training", True) or not recorder.level or not registry.is_root(module):
        return False
    return not (thread.calls or _torch.grad_enabled() or _within())


def _within() -> bool:
    """Whether the present call of a module was made inside another call."""
    frame: FrameType | None = sys._getframe(4)
    while frame is not None and frame.f_code is not codes.call:
        frame = frame.f_back
    return frame is not None


@guarded("the forward hook", opens=(kinds.FORWARD_BEGIN,))
def _begins(frame: int, module: Any, args: Any, kwargs: dict[str, Any]) -> None:
    calls = thread.calls
    if calls and calling() != calls[-1][0]:
        thread.close_calls()
    if not calls:
        _outermost(frame, module, args)
        return
    number = registry.number(module, outermost=False)
    serial = _serial()
    stamps.module(recorder.mark(kinds.MODULE_BEGIN, 0, number))
    # A recompute runs on another thread, which counts nodes for itself.
    first = 0 if in_backward() else nodes.enter(number)
    events.module_called.tell(args, kwargs, serial)
    calls.append((frame, number, serial, first))


def _outermost(frame: int, module: Any, args: Any) -> None:
    inside_backward = in_backward()
    number = registry.number(module, outermost=True)
    flags = kinds.GRAD if _torch.grad_enabled() else 0
    flags |= kinds.TRAINING if module.training else 0
    flags |= kinds.INFERENCE if _torch.inference() else 0
    flags |= kinds.IN_BACKWARD if inside_backward else 0
    flags |= kinds.GRAPH_MODULE if isinstance(module, _torch.GraphModule) else 0
    steps.trains()
    instrumented = recorder.level >= MODULES
    serial = _serial() if instrumented else 0
    k = thread.begin(kinds.FORWARD_BEGIN, flags, number)
    first = 0
    if not inside_backward:
        first = nodes.enter(number) if instrumented else private.sequence_number()
    thread.calls.append((frame, number, serial, first))
    if inside_backward:
        stamps.module(k)
        return
    stamps.stamp(k)
    drains.check()
    events.model_called.tell(module, args)


@guarded("the forward hook", opens=(kinds.FORWARD_BEGIN,))
def _ended(frame: int, args: Any, kwargs: dict[str, Any], out: Any) -> None:
    """Runs after each call that began with marks. out is None if the call raised."""
    calls = thread.calls
    if not any(c[0] == frame for c in calls):
        return  # the call was closed before
    while calls[-1][0] != frame:
        calls.pop()  # an interrupt came while the end of this inner call was being marked
    if len(calls) == 1:
        _outermost_ended(args, kwargs, out, calls)
        return
    call = calls.pop()
    if recorder.level < MODULES:
        return  # a step has ended inside the call
    stamps.module(recorder.mark(kinds.MODULE_END, 0, call[1]))
    if not in_backward():
        nodes.enter(calls[-1][1])
    events.module_returned.tell(out, call, calls)


def _outermost_ended(args: Any, kwargs: dict[str, Any], out: Any, calls: list[Call]) -> None:
    inside_backward, module = in_backward(), args[0]
    call = calls[0]
    flags = kinds.GRAD if _torch.grad_enabled() else 0
    flags |= kinds.TRAINING if module.training else 0
    flags |= kinds.IN_BACKWARD if inside_backward else 0
    if needs_grad(out):
        flags |= kinds.DIFFERENTIABLE
    elif type(out) is recorder.torch.Tensor and recorder.cuda and _is_of_host(module, args, kwargs, out):
        flags |= kinds.HOST
    k = thread.end(kinds.FORWARD_BEGIN, flags, call[1])
    calls.clear()
    if inside_backward:
        stamps.module(k)
        return
    stamps.stamp(k)
    if recorder.level >= MODULES:
        nodes.enter(0)
        if call[2]:  # no step has ended inside the call
            nodes.learn(call[1], call[3])
        events.module_returned.tell(out, call, calls)
    elif recorder.tagging and recorder.cuda:
        nodes.repeated(call[1], call[3])
    events.model_returned.tell(kwargs, out)


@quiet
def _is_of_host(module: Any, args: Any, kwargs: dict[str, Any], out: Any) -> bool:
    """Whether a call used no tensor on the device, as for a module that transforms data on the host."""
    if out.is_cuda:
        return False
    tensors = [t for t in (*args[1:], *kwargs.values()) if isinstance(t, recorder.torch.Tensor)]
    return not any(t.is_cuda for t in (*tensors, *module.parameters(), *module.buffers()))


def _compile(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps Module.compile, which would compile the agent's function with the module. With the wrapper the agent's
    function runs around the compiled code, and Dynamo does not see it."""

    @functools.wraps(original)
    def compile(self: Any, *args: Any, **kwargs: Any) -> None:
        inner = compile_with(self, _bound_impl(self), lambda: original(self, *args, **kwargs))
        ours = watched(lambda _self, *args, **kwargs: inner(*args, **kwargs))
        set_compiled(self, functools.partial(ours, self))

    return compile


def _bound_impl(module: Any) -> Any:
    """The function that would call a module without the agent: torch's function, or that of the module's class."""
    own = getattr(type(module), CALL)
    return (_torch.impl if own is getattr(recorder.torch.nn.Module, CALL) else own).__get__(module)
