"""Marks of backward. Every Python road to autograd ends in one attribute, the engine; its successor marks each run.
On a GPU the work is done by the engine's own thread, so a hook on the first node sets a mark there."""

from __future__ import annotations

import threading
import weakref
from types import CodeType
from typing import Any

from dpsight import gradients, kinds, saved, tags, timing
from dpsight.marks import mark
from dpsight.patch import Patches
from dpsight.state import RAN, Call, Calm, Trainer, failed, local, state
from dpsight.steps import steps
from dpsight.tensors import grad_fns, quiet
from dpsight.torch_compat import ENGINE, node_number, private

_ident = threading.get_ident

# Counted for the whole process: on a GPU an optimizer inside backward runs on the engine's thread.
optimizers_inside = 0
runs = 0  # outermost runs so far
_run = 0  # mark at which the latest of them began

_trainers: weakref.WeakSet[Trainer] = weakref.WeakSet()  # of the threads that are alive

_run_code: CodeType | None = None  # frames of this code wait for the engine


def install(patches: Patches) -> None:
    """Puts our engine in place of torch's, as its subclass."""
    global _run_code
    variable = state.torch.autograd.variable.Variable
    base = type(getattr(variable, ENGINE))

    class Engine(base):  # type: ignore[misc, valid-type]
        def run_backward(self, *args: Any, **kwargs: Any) -> Any:
            run = super().run_backward
            if state.unphased and state.unphased == _ident():
                state.passed, state.active = RAN, True
                out = run(*args, **kwargs)
                if optimizers_inside:  # for the first time: from here on runs are marked
                    from dpsight import optimizers

                    optimizers.settle()
                    timing.stamp(mark(kinds.UPDATED, kinds.IN_BACKWARD))
                    _updated_inside()
                return out
            if state.dead or fake():  # AOTAutograd traces a joint graph: nothing runs
                return run(*args, **kwargs)
            entered = _enter(args, kwargs)
            try:
                out = run(*args, **kwargs)
            except BaseException:
                _leave(entered, whole=False)
                raise
            _leave(entered, whole=True)
            return out

    _run_code = Engine.run_backward.__code__
    patches.set(variable, ENGINE, Engine())


def running() -> bool:
    """Whether this thread is inside a run of the engine."""
    return private.graph_task() != -1


def nowhere(_device: Any) -> bool:
    """No device is calm."""
    return False


def calm() -> Calm | None:
    """On which devices this thread may read gradients and graphs; None = on all. The engine's threads, one for each
    device, and for the host the one that waits for them, write gradients and let go of graphs without a lock that
    would keep them from being read meanwhile: who reads them then ends the process.

    A run elsewhere may begin at any moment while we look, so a thread that does not train looks at none."""
    if running():
        if local.trainer is not None or len(_trainers) > 1:
            return nowhere
        here = private.current_device()
        return lambda device: device.type == "cuda" and device.index == here
    if local.trainer is not None:
        return None if len(_trainers) == 1 else nowhere
    from dpsight import modules

    return nowhere if len(_trainers) or modules.called_elsewhere() else None


def is_run(code: CodeType) -> bool:
    """Whether frames of this code wait for the engine."""
    return code is _run_code


def fake() -> bool:
    """Whether tensors are fake: something traces, nothing runs."""
    return private.fake_mode() is not None


def _enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, bool]:
    """Marks the beginning of a run. Returns whether it is nested, and whether it releases the whole graph."""
    global runs, _run

    def argument(i: int, name: str, default: Any = None) -> Any:
        return args[i] if len(args) > i else kwargs.get(name, default)

    nested, releases = running(), False
    try:
        if local.calls:
            from dpsight import forward

            forward.repair()
        if local.optimizer:
            from dpsight import optimizers

            optimizers.repair()
        if local.recompute and local.recompute[-1] == "reentrant":
            local.recompute.pop()
            # A reentrant checkpoint's recompute ends where its own backward begins.
            timing.module_stamp(mark(kinds.RECOMPUTE_END, 0, 1))
            if state.instrumented and state.cuda:
                saved.tag(argument(0, "tensors", ()))
        roots = argument(0, "tensors", ())
        keep, create = bool(argument(2, "keep_graph")), bool(argument(3, "create_graph"))
        functorch = private.functorch_level() is not None
        flags = kinds.KEEP_GRAPH if keep else 0
        flags |= kinds.CREATE_GRAPH if create else 0
        flags |= kinds.ACCUMULATE if argument(6, "accumulate_grad") else 0
        flags |= kinds.NESTED_RUN if nested else 0
        flags |= kinds.IN_FORWARD if local.calls else 0
        flags |= kinds.FUNCTORCH if functorch else 0
        if not nested and not functorch:
            state.active = True
            runs += 1
            if state.instrumented and state.cuda:
                saved.tag(roots)
        k = mark(kinds.BACKWARD_BEGIN, flags, len(roots))
        if not nested:
            _run = k
            timing.stamp(k)
            timing.backward_begins()
            releases = not keep and not create and not argument(4, "inputs")
        # Where nothing is recorded a thread that makes marks of its own arrives with the first of them: a hook in every
        # run would show in steps of a few milliseconds.
        if not functorch and state.recording:
            _mark_engine(roots, k)
    except Exception as error:
        failed("the backward hook", error)
    local.backward += 1
    if not nested and local.trainer is None:
        trainer = Trainer()
        _trainers.add(trainer)
        local.trainer = trainer
    if not local.trains:
        local.trains = True
        state.trainers += 1
    return nested, releases


def _leave(entered: tuple[bool, bool], whole: bool) -> None:
    nested, releases = entered
    local.backward -= 1
    try:
        k = mark(kinds.BACKWARD_END, kinds.NESTED_RUN if nested else 0)
        if nested or local.backward:
            return
        timing.backward_ends()
        timing.stamp(k)
        if state.instrumented and state.cuda:
            if whole and releases:
                saved.released()
            tag_samples()
        if optimizers_inside:
            _updated_inside()
    except Exception as error:
        failed("the backward hook", error)


def _updated_inside() -> None:
    global optimizers_inside
    optimizers_inside = 0
    if not local.optimizer:  # else the step ends with the update around it
        steps.updated("in backward")


@quiet
def tag_samples() -> None:
    """Tags what a per-sample method left on parameters without passing our hooks (expanded weights)."""
    from dpsight import modules, opacus_hooks

    if not opacus_hooks.present:
        return
    out: list[tags.Record] = []
    for root in modules.roots():
        for p in root.parameters():
            if p.__dict__:
                out += [r for r in gradients.attached(p, modules.names.get(id(p), 0)) if r[0] != kinds.GRADIENT]
    tags.emit(out)


@quiet
def _mark_engine(roots: Any, k: int) -> None:
    """Has the first node on each device mark its thread before it allocates anything.

    One-shot: a graph kept by retain_graph fires its old hooks again in the next run, and would mark this one.
    """
    devices = set()
    for root in roots:
        if isinstance(root, state.torch.Tensor):
            node, device = root.grad_fn, root.device
        else:
            node, device = getattr(root, "node", None), None
        if node is None or device in devices or not hasattr(node, "register_prehook"):
            continue
        devices.add(device)
        _once(node, k)


def arrive() -> None:
    """Where this thread is the engine's and has not said so in this run, it does: it is about to make a mark, or has
    asked for memory in vain. Else its stamps count for nothing, and it could be taken for the thread that trains."""
    if running() and not local.backward and local.arrived < _run:
        _arrive(_run)


def _once(node: Any, k: int) -> None:
    handle: Any = None

    def first(_gradients: Any) -> None:
        nonlocal handle
        if handle is not None:
            handle.remove()
            handle = None
            if not state.dead:
                _arrive(k)

    handle = node.register_prehook(first)


def _arrive(k: int) -> None:
    """The first hook of a run on this thread, whichever it is, marks it: until then the thread's mark is an old one."""
    if local.arrived != k:
        local.arrived = k
        local.open.clear()
        mark(kinds.ENGINE, 0, k)
        timing.engine_arrives()


@quiet
def watch_inputs(args: Any, kwargs: dict[str, Any], serial: int) -> None:
    """Marks where backward leaves a module: when a node that made one of its inputs begins."""
    if not state.torch.is_grad_enabled() or running() or private.functorch_level() is not None:
        return
    for node in grad_fns([*args, *kwargs.values()] if kwargs else args):
        node.register_prehook(lambda _gradients: _left(serial))


@quiet
def watch_outputs(out: Any, call: Call, calls: list[Call]) -> None:
    """Marks where backward enters a module: when a node that made one of its outputs begins, if that was made inside.

    Prehooks only: a node with other hooks keeps its gradients longer, and register_full_backward_hook puts nodes of its
    own into the graph; both would raise the peak.
    """
    _, number, serial, first = call
    if not serial or not state.torch.is_grad_enabled() or running() or private.functorch_level() is not None:
        return
    nodes = [node for node in grad_fns((out,), objects=True) if not -1 < node_number(node) < first]
    if nodes:
        path = (*((s, n) for _, n, s, _ in calls), (serial, number))
        for node in nodes:
            node.register_prehook(lambda _gradients: _entered(path))


def _entered(path: tuple[tuple[int, int], ...]) -> None:
    """Backward is inside the last module of path: leaves those that are not on the path, and enters those that are."""
    if not state.instrumented or state.dead:
        return
    if local.arrived < _run:
        _arrive(_run)
    inside = local.open
    if path[-1] in inside:
        return  # a container whose last child made its output: we are deeper already
    while inside and inside[-1] not in path:
        mark(kinds.MODULE_BACKWARD_END, 0, inside.pop()[1])
    k = 0
    for call in path:
        if call not in inside:
            inside.append(call)
            k = mark(kinds.MODULE_BACKWARD_BEGIN, 0, call[1])
    timing.module_stamp(k)  # nothing ran between these marks


def _left(serial: int) -> None:
    inside = local.open
    if state.instrumented and not state.dead and any(s == serial for s, _ in inside):
        while inside:
            s, number = inside.pop()
            k = mark(kinds.MODULE_BACKWARD_END, 0, number)
            if s == serial:
                timing.module_stamp(k)
                return


def after_fork() -> None:
    """Counts anew."""
    global optimizers_inside, runs, _run
    optimizers_inside = runs = _run = 0
    _trainers.clear()
