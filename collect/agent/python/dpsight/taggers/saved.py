"""Tags what autograd holds for backward. The graph is walked when backward begins, so that forward stays as fast.

The module reads only the raw attributes of nodes. To read other attributes, or saved_tensors, would unpack the tensors:
that recomputes checkpoints, copies offloaded tensors back, and crashes scripts with selective checkpointing. Hooks on
saving are no alternative: set globally, they break torch.func inside a forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpsight import kinds
from dpsight.graph_safety import Safe
from dpsight.interruptions import by_script
from dpsight.nodes import below, nodes, thread_nodes
from dpsight.recorder import events, in_backward, recorder
from dpsight.registry import registry
from dpsight.tags import Record, tags
from dpsight.tensors import grad_fns, inside, quiet, storages
from dpsight.torch_compat import (
    checkpoint_inputs,
    expired,
    input_devices,
    is_saved,
    node_number,
    saved_attributes,
    weak,
)

_MOST_NODES = 200_000

_Node = tuple[int, int]
"""The thread that walked to a node, and its sequence number: each thread counts the nodes of its own graphs."""


class Saved:
    """Tags what graphs hold."""

    def __init__(self) -> None:
        self._attributes: dict[type, list[str]] = {}  # node type → names of the attributes with saved tensors
        self._names: dict[type, int] = {}
        # Address → (bytes, name, module, weak reference to the storage, nodes that hold it and release it when backward
        # has run over them (none: it lives as long as its node), all nodes that hold it)
        self._held: dict[int, tuple[int, int, int, Any, set[_Node], set[_Node]]] = {}

    def install(self) -> None:
        """Subscribes to backward."""
        events.step_ended.subscribe(lambda _number: self._held.clear())
        events.backward_begins.subscribe(self._tag)
        events.transform_runs.subscribe(self._tag)
        events.graph_made.subscribe(self._graph_made)
        events.recompute_ended.subscribe(self._tag)
        events.block_recomputed.subscribe(_tag_recomputed)
        events.backward_ended.subscribe(lambda released: self._untag() if released else None)

    @quiet
    def _tag(self, roots: Any) -> None:
        """Tags everything that the graph below roots holds, and the roots themselves."""
        records: list[Record] = []
        if not in_backward():
            thread_nodes.now().reached.clear()
        for root in roots:
            if isinstance(root, recorder.torch.Tensor):
                records += tags.of(kinds.OUTPUT, root)
        tags.emit(records + self.below([n for n in (_node(r) for r in roots) if n is not None]))

    @quiet
    def _graph_made(self, roots: Any, gradients: Any) -> None:
        """Tags what a run with differentiable gradients holds: the gradients that it returned, and the gradients on the
        leaves of the graph."""
        left = [] if gradients else _gradients_below([_node(root) for root in roots])
        tags.emit(self.below(grad_fns([g for g in (*(gradients or ()), *left) if g is not None])))

    @quiet
    def _untag(self) -> None:
        """Called when a run has released its graph. A tensor with another holder is then no longer a saved tensor,
        unless that holder is another graph, such as the head of a loss whose backward retained its graph."""
        untagged: list[Record] = []
        reached = thread_nodes.now().reached
        for address, (size, name, module, ref, holders, _) in list(self._held.items()):
            if holders and holders <= reached:
                if not expired(ref):
                    untagged.append((kinds.SAVED_TENSOR, address, size, name, module, 0))
                self._held.pop(address, None)
            holders -= reached
        tags.emit(untagged, untag=True)

    def below(self, todo: list[Any], safe: Safe | None = None, every: bool = False) -> list[Record]:
        """Records of tensors that the graph below some nodes holds, and that were not known to be held. Where reading
        is not safe, it reads only nodes that the engine has already reached. Call it with __torch_function__ turned
        off. every: all existing graphs lie below these nodes, so what other graphs held is no longer held."""
        known, thread, reached = self._alive(), thread_nodes.number, thread_nodes.now().reached
        for p in (p for root in registry.roots() for p in root.parameters()):
            for storage, _ in storages(p):
                known.add(storage.data_ptr())  # graphs save parameters too, which have tags of their own
        seen: set[Any] = set()
        found: list[Record] = []
        while todo and len(seen) < _MOST_NODES:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            todo.extend(n for n, _ in node.next_functions if n is not None)
            if safe is not None and not safe(node_device(node)):
                continue
            this = (thread, node_number(node))
            reached.add(this)
            name = module = -1
            for tensor, by_graph in self.tensors(node, todo):
                for storage, dtype in storages(tensor):
                    address, size = storage.data_ptr(), storage.nbytes()
                    if address in known:
                        held = self._held.get(address)
                        if held is not None:
                            held[5].add(this)
                            if by_graph and held[4]:
                                held[4].add(this)
                        continue
                    if not size:
                        continue
                    if module < 0:
                        name, module = self.made(node)
                    known.add(address)
                    found.append((kinds.SAVED_TENSOR, address, size, name, module, dtype))
                    self._held[address] = (size, name, module, weak(storage), {this} if by_graph else set(), {this})
        if every and safe is None and not todo:
            self._forget_graphs({(thread, node_number(node)) for node in seen}, thread)
        return found

    def _forget_graphs(self, alive: set[_Node], thread: int) -> None:
        """Forgets this thread's graphs that no longer exist: no backward reached them, and their tensors are no longer
        saved."""
        untagged: list[Record] = []
        for address, (size, name, module, ref, _, holders) in list(self._held.items()):
            if holders.isdisjoint(alive) and all(walker == thread for walker, _ in holders):
                if not expired(ref):
                    untagged.append((kinds.SAVED_TENSOR, address, size, name, module, 0))
                self._held.pop(address, None)
        tags.emit(untagged, untag=True)

    def tensors(self, node: Any, todo: list[Any]) -> Iterator[tuple[Any, bool]]:
        """The tensors that a node holds, and whether the graph releases each of them when backward has run."""
        attributes = self._attributes.get(type(node))
        if attributes is None:
            attributes = self._attributes[type(node)] = saved_attributes(type(node))
        for attribute in attributes:
            try:
                value = getattr(node, attribute)
            except (RuntimeError, AttributeError) as error:
                if by_script(error):
                    raise
                continue  # already released
            variables = list(value) if isinstance(value, (tuple, list)) else [value]
            while variables:
                variable = variables.pop()
                if variable is None:
                    continue
                try:
                    data = variable.data
                except RuntimeError as error:
                    if by_script(error):
                        raise
                    continue
                if isinstance(data, recorder.torch.Tensor):
                    yield data, True
                for kept in checkpoint_inputs(getattr(variable, "unpack_hook", None)):
                    (variables if is_saved(kept) else todo).append(kept)
        # Attributes that a torch.autograd.Function sets on its context live as long as the node.
        own = getattr(node, "__dict__", None)
        if own:
            for tensor in inside(list(own.values())):
                yield tensor, False

    def made(self, node: Any) -> tuple[int, int]:
        """The numbers of a node's name and of the module that made it."""
        name = self._names.get(type(node))
        if name is None:
            name = self._names[type(node)] = recorder.tag_name(node.name())
        return name, nodes.module_of(node)

    def _alive(self) -> set[int]:
        """Addresses held since an earlier run over the same graph. Addresses whose storage is gone are forgotten."""
        alive = set()
        for address, held in list(self._held.items()):  # a copy, since threads with their own graphs share it
            if not expired(held[3]):
                alive.add(address)
            elif self._held.get(address) is held:
                self._held.pop(address, None)
        return alive


def _tag_recomputed(tensors: list[Any]) -> None:
    tags.emit(tags.within(kinds.SAVED_TENSOR, tensors, recorder.tag_name("recomputed")))


def _gradients_below(todo: list[Any]) -> Iterator[Any]:
    """The gradients of the leaves below some nodes."""
    for node in below(todo, _MOST_NODES):
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf.grad is not None:
            yield leaf.grad


def _node(root: Any) -> Any:
    return root.grad_fn if isinstance(root, recorder.torch.Tensor) else getattr(root, "node", None)


def node_device(node: Any) -> Any:
    """The device whose engine thread runs a node: the first GPU among the devices of its inputs, as in torch, or
    else the host."""
    try:
        found = input_devices(node)
    except (RuntimeError, AttributeError) as error:
        if by_script(error):
            raise
        found = []  # a node without its graph
    return next((d for d in found if d.type != "cpu"), recorder.torch.device("cpu"))


saved = recorder.part(Saved)
