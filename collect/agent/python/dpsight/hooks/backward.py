"""Marks runs of backward. All Python code reaches autograd through one attribute, torch's engine. The agent's engine
replaces it and marks each run. On a GPU the engine's own thread does the work, so a hook on the first node sets a mark
there."""

from __future__ import annotations

import functools
from typing import Any

from dpsight import kinds
from dpsight.patch import Patches
from dpsight.recorder import (
    TAGS,
    codes,
    drains,
    events,
    guarded,
    in_backward,
    recorder,
    runs,
    stamps,
    steps,
    thread,
    unphased,
)
from dpsight.tensors import quiet
from dpsight.torch_compat import ENGINE, private


def install(patches: Patches) -> None:
    """Replaces torch's engine by an instance of a subclass."""
    variable = recorder.torch.autograd.variable.Variable
    base = type(getattr(variable, ENGINE))

    class Engine(base):  # type: ignore[misc, valid-type]
        def run_backward(self, *args: Any, **kwargs: Any) -> Any:
            run = super().run_backward
            if recorder.without_phases():
                unphased.runs()
                steps.trains()
                out = run(*args, **kwargs)
                if runs.updates_inside:
                    _first_updated_inside()
                return out
            if not recorder.level or _is_traced():  # _is_traced: for example AOTAutograd's joint graph
                return run(*args, **kwargs)
            nested = in_backward()
            releases = _enter(args, kwargs, nested)
            try:
                out = run(*args, **kwargs)
            except BaseException:
                _leave(nested, released=False)
                raise
            _leave(nested, releases)
            if recorder.level >= TAGS:
                _ran(args, kwargs, nested, out)
            return out

    codes.know(run=Engine.run_backward.__code__)
    patches.set(variable, ENGINE, Engine())


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], i: int, name: str, default: Any = None) -> Any:
    return args[i] if len(args) > i else kwargs.get(name, default)


@guarded("the backward hook", otherwise=True, opens=(kinds.BACKWARD_BEGIN,))
def _is_traced() -> bool:
    return private.traces()


@guarded("the backward hook", otherwise=False, opens=(kinds.BACKWARD_BEGIN,))
def _enter(args: tuple[Any, ...], kwargs: dict[str, Any], nested: bool) -> bool:
    """Marks the beginning of an engine's run. Returns whether the run releases the whole graph."""
    argument = functools.partial(_argument, args, kwargs)
    roots = argument(0, "tensors", ())
    keep, create = bool(argument(2, "keep_graph")), bool(argument(3, "create_graph"))
    functorch = private.functorch_level() is not None
    thread.close_stale()
    if thread.recomputes and thread.recomputes[-1]:
        # The recompute of a reentrant checkpoint ends where the backward of the recomputed part begins.
        thread.recomputes.pop()
        stamps.module(thread.end(kinds.RECOMPUTE_BEGIN, 0, 1))
        if recorder.level >= TAGS:
            events.recompute_ended.tell(roots)
    flags = kinds.KEEP_GRAPH if keep else 0
    flags |= kinds.CREATE_GRAPH if create else 0
    flags |= kinds.ACCUMULATE if argument(6, "accumulate_grad") else 0
    flags |= kinds.NESTED_RUN if nested else 0
    flags |= kinds.IN_FORWARD if thread.calls else 0
    flags |= kinds.FUNCTORCH if functorch else 0
    if not nested and not functorch:
        steps.trains()
        runs.count_one()
        if recorder.level >= TAGS:
            events.backward_begins.tell(roots)
    elif functorch and recorder.level >= TAGS:
        events.transform_runs.tell(roots)
    events.run_begins.tell(roots)
    k = thread.begin(kinds.BACKWARD_BEGIN, flags, len(roots))
    if not nested:
        runs.begins(k)
        stamps.stamp(k)
        stamps.backward_begins()
    # Only runs whose allocator events are recorded get the hook, since it would be noticeable in steps of a few
    # milliseconds. In other runs an engine's thread marks its arrival before its first mark.
    if drains.recording:
        _mark_engine(roots, k)
    thread.trained(nested)
    return not nested and not keep and not create and not argument(4, "inputs")


@guarded("the backward hook", opens=(kinds.BACKWARD_BEGIN,))
def _leave(nested: bool, released: bool) -> None:
    """Marks the end of an engine's run. released: the run has released its whole graph."""
    events.run_ended.tell()
    k = thread.end(kinds.BACKWARD_BEGIN, kinds.NESTED_RUN if nested else 0)
    if nested or thread.inside(kinds.BACKWARD_BEGIN):
        return
    stamps.backward_ends()
    stamps.stamp(k)
    if recorder.level >= TAGS:
        events.backward_ended.tell(released)
    if runs.updates_inside:
        _updated_inside()


@guarded("the backward hook")
def _ran(args: tuple[Any, ...], kwargs: dict[str, Any], nested: bool, out: Any) -> None:
    """Reports gradients that a run made under a transform or with create_graph. _ran is called after the mark of the
    run's end, when the engine's threads are done, so addresses are certain."""
    argument = functools.partial(_argument, args, kwargs)
    transform = private.functorch_level() is not None
    if transform:
        events.transform_ran.tell(argument(4, "inputs", ()), out)
    if argument(3, "create_graph") and (transform or not nested):
        events.graph_made.tell(argument(0, "tensors", ()), out)


@guarded("the backward hook", opens=(kinds.BACKWARD_BEGIN,))
def _first_updated_inside() -> None:
    """Called when a run in a step without phases has updated parameters: marks the update. From then on runs are
    marked."""
    thread.close_stale()
    stamps.stamp(recorder.mark(kinds.UPDATED, kinds.IN_BACKWARD))
    _updated_inside()


def _updated_inside() -> None:
    runs.forget_updates()
    if not thread.inside(kinds.OPTIMIZER_BEGIN):  # otherwise the outer optimizer's update ends the step
        steps.updated("in backward")


@quiet
def _mark_engine(roots: Any, k: int) -> None:
    """Makes the first node on each device mark its thread before the node allocates anything.

    The hook runs once: the next run over a retained graph would call it again, with this run's number.
    """
    devices = set()
    for root in roots:
        if isinstance(root, recorder.torch.Tensor):
            node, device = root.grad_fn, root.device
        else:
            node, device = getattr(root, "node", None), None
        if node is None or device in devices or not hasattr(node, "register_prehook"):
            continue
        devices.add(device)
        _once(node, k)


@guarded("the backward hook", opens=(kinds.BACKWARD_BEGIN,))
def _arrives(k: int) -> None:
    thread.arrives(k)


def _once(node: Any, k: int) -> None:
    handle: Any = None

    def first(_gradients: Any) -> None:
        nonlocal handle
        if handle is not None:
            handle.remove()
            handle = None
            if recorder.level:
                _arrives(k)

    handle = node.register_prehook(first)
