"""Marks the modules that backward is inside of. Hooks on the nodes that made a module's outputs tell when backward
enters the module. Hooks on the nodes that made its inputs tell when backward leaves it.

All hooks on nodes are prehooks. Hooks that run after a node would make it keep its gradients longer, and
register_full_backward_hook adds nodes to the graph; either would raise the peak.
"""

from __future__ import annotations

from typing import Any

from dpsight import kinds
from dpsight.recorder import MODULES, Call, events, guarded, in_backward, recorder, runs, stamps, thread
from dpsight.tensors import grad_fns, quiet
from dpsight.torch_compat import node_number, private


def install() -> None:
    """Subscribes to calls of modules."""
    events.module_called.subscribe(_watch_inputs)
    events.module_returned.subscribe(_watch_outputs)


def _no_graph() -> bool:
    """Whether the tensors of this call have no nodes that backward will reach."""
    return not recorder.torch.is_grad_enabled() or in_backward() or private.functorch_level() is not None


@quiet
def _watch_inputs(args: Any, kwargs: dict[str, Any], serial: int) -> None:
    """Marks where backward leaves a module: when a node that made one of its inputs begins."""
    if _no_graph():
        return
    for node in grad_fns([*args, *kwargs.values()] if kwargs else args):
        node.register_prehook(lambda _gradients: _left(serial))


@quiet
def _watch_outputs(out: Any, call: Call, calls: list[Call]) -> None:
    """Marks where backward enters a module: when a node that made one of its outputs begins, if the module made
    that output."""
    _, number, serial, first = call
    if not serial or _no_graph():
        return
    nodes = [node for node in grad_fns((out,), objects=True) if not -1 < node_number(node) < first]
    if nodes:
        path = (*((s, n) for _, n, s, _ in calls), (serial, number))
        for node in nodes:
            node.register_prehook(lambda _gradients: _entered(path))


@guarded("following backward through modules")
def _entered(path: tuple[tuple[int, int], ...]) -> None:
    """Called when backward is inside the last module of path: marks that it has left modules that are not on the path,
    and has entered those that are."""
    if recorder.level < MODULES:
        return
    if thread.arrived < runs.latest:
        thread.arrives(runs.latest)
    inside = thread.backward_modules
    if path[-1] in inside:
        return  # a container whose last child made its output: backward is already inside that child
    while inside and inside[-1] not in path:
        recorder.mark(kinds.MODULE_BACKWARD_END, 0, inside.pop()[1])
    k = 0
    for call in path:
        if call not in inside:
            inside.append(call)
            k = recorder.mark(kinds.MODULE_BACKWARD_BEGIN, 0, call[1])
    stamps.module(k)  # one stamp suffices: nothing ran on the device between these marks


@guarded("following backward through modules")
def _left(serial: int) -> None:
    inside = thread.backward_modules
    if recorder.level >= MODULES and any(s == serial for s, _ in inside):
        while inside:
            s, number = inside.pop()
            k = recorder.mark(kinds.MODULE_BACKWARD_END, 0, number)
            if s == serial:
                stamps.module(k)
                return
