"""What autograd holds for backward: found by walking the graph when backward begins, which costs forward nothing.

Only raw attributes of nodes are read. The others, and saved_tensors, unpack: that recomputes checkpoints, copies
offloaded tensors back, and kills scripts under selective checkpointing. Hooks on saving were rejected too: pushed
globally they break torch.func inside a forward.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Any

from dpsight import kinds, tags
from dpsight.interruptions import by_script
from dpsight.marks import tag_name
from dpsight.state import Calm, state
from dpsight.tensors import inside, quiet, storages
from dpsight.torch_compat import (
    checkpoint_inputs,
    expired,
    input_devices,
    node_number,
    private,
    saved_attributes,
    weak,
)

_MOST_NODES = 200_000
_threads = itertools.count()


class _Thread(threading.local):
    """What a thread knows of its own graphs. No other gets its number; its identifier is given again after its end."""

    def __init__(self) -> None:
        self.number = next(_threads)
        self.step = 0  # in which the rest was gathered
        # In which module each autograd node was made: sequence numbers at which a module was entered or left,
        # and which.
        self.sequence: list[int] = []
        self.owners: list[int] = []
        self.reached: set[_Node] = set()  # the nodes that its run, or one nested in it, reaches

    def now(self) -> _Thread:
        """Itself, with nothing left of an earlier step: the thread that ends steps may be another."""
        if self.step != _step:
            self.step = _step
            self.sequence.clear()
            self.owners.clear()
            self.reached.clear()
        return self


# A node: the thread that walked to it and its sequence number. Each thread counts the nodes of its own graphs.
_Node = tuple[int, int]
_thread = _Thread()
_step = 0  # goes up when a step ends
# Of forward passes in instrumented steps, by root and how many nodes they made: sequence numbers, counted from their
# first, at which a module was entered or left, and which.
_learned: dict[tuple[int, int], tuple[Sequence[int], Sequence[int]]] = {}
_MOST_LEARNED = 64
_forwards: deque[tuple[int, int, int]] = deque(maxlen=64)  # of this bare step: root, first node, first after it
_slots: dict[type, list[str]] = {}  # node type → names of its attributes
_names: dict[type, int] = {}
# What is held: address → (bytes, name, module, weak reference to the storage, the nodes that hold it and let go of it
# when backward has run over them; none = it lives as long as its node)
_held: dict[int, tuple[int, int, int, Any, set[_Node]]] = {}


def enter(module: int) -> int:
    """From here on new nodes belong to this module. Returns the sequence number of the first."""
    mine = _thread.now()
    first = now()
    mine.sequence.append(first)
    mine.owners.append(module)
    return first


def now() -> int:
    """The sequence number of the node that this thread makes next."""
    return private.sequence_number()


def learn(root: int, first: int) -> None:
    """Notes where the nodes of a forward pass were made, for bare steps: they repeat it."""
    mine, key = _thread.now(), (root, now() - first)
    if key not in _learned and len(_learned) < _MOST_LEARNED:
        i = bisect_left(mine.sequence, first)
        _learned[key] = ([s - first for s in mine.sequence[i:]], mine.owners[i:])


def repeated(root: int, first: int) -> None:
    """Notes which nodes a forward pass of a bare step has made."""
    _forwards.append((root, first, now()))


def unfinished(root: int, first: int, module: int) -> None:
    """The same of a pass that is under way, inside a module: it is like one that was in that module at this node, or at
    the one before, which is made before its memory is asked for."""
    at = now() - first
    for (other, length), (offsets, owners) in list(_learned.items()):
        if other == root and module in owners[max(0, bisect_right(offsets, at - 1) - 1) : bisect_right(offsets, at)]:
            _forwards.append((root, first, first + length))
            return


def made_in(sequence: int) -> int:
    """The module in which a bare step's node was made, as an instrumented step's was that made as many; else the
    outermost one; 0 = in none."""
    if state.trainers > 1:  # each thread counts nodes for itself
        return 0
    for root, first, last in reversed(list(_forwards)):
        if first <= sequence < last:
            offsets, owners = _learned.get((root, last - first), ((), ()))
            i = bisect_right(offsets, sequence - first) - 1
            return (owners[i] if i >= 0 else 0) or root
    return 0


def step_ended() -> None:
    """Graphs seldom outlive a step; those that do lose their modules, not their tags."""
    global _step
    _step += 1
    _held.clear()
    _forwards.clear()


@quiet
def tag(roots: Any) -> None:
    """Tags everything that the graph below roots holds, and the roots themselves."""
    records: list[tags.Record] = []
    if private.graph_task() == -1:
        _thread.now().reached.clear()
    for root in roots:
        if isinstance(root, state.torch.Tensor):
            records += tags.of(kinds.OUTPUT, root)
    new = _walk([n for n in (_node(r) for r in roots) if n is not None])
    records += [(kinds.SAVED_TENSOR, *at) for at in new]
    tags.emit(records)


def below(nodes: list[Any], calm: Calm | None) -> list[tags.Record]:
    """Records of what the graph below some nodes holds, where no run begins: of the nodes whose turn comes where it is
    calm. Call it with __torch_function__ off."""
    return [(kinds.SAVED_TENSOR, *at) for at in _walk(list(nodes), calm)]


def _walk(todo: list[Any], calm: Calm | None = None) -> list[tuple[int, int, int, int, int]]:
    """Walks the graph below some nodes. Returns address, bytes, name, module and dtype of what was not known to be
    held."""
    from dpsight import modules

    known, thread, reached = _alive(), _thread.number, _thread.now().reached
    for p in (p for root in modules.roots() for p in root.parameters()):
        for storage, _ in storages(p):
            known.add(storage.data_ptr())  # parameters are saved too, and have tags of their own
    seen: set[Any] = set()
    found: list[tuple[int, int, int, int, int]] = []
    while todo and len(seen) < _MOST_NODES:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        todo.extend(n for n, _ in node.next_functions if n is not None)
        if calm is not None and not calm(_where(node)):
            continue
        slots = _slots.get(type(node))
        if slots is None:
            slots = _slots[type(node)] = saved_attributes(type(node))
        sequence = node_number(node)
        this = (thread, sequence)
        reached.add(this)
        name = module = -1
        for tensor, by_graph in _tensors(node, slots, todo):
            for storage, dtype in storages(tensor):
                address, size = storage.data_ptr(), storage.nbytes()
                if address in known:
                    held = _held.get(address)
                    if by_graph and held is not None and held[4]:
                        held[4].add(this)
                    continue
                if not size:
                    continue
                if module < 0:
                    name, module = made(node)
                known.add(address)
                found.append((address, size, name, module, dtype))
                _held[address] = (size, name, module, weak(storage), {this} if by_graph else set())
    return found


def _where(node: Any) -> Any:
    """The device whose thread of the engine runs a node: the first GPU among those of what flows into it, as torch has
    it, or else the host."""
    try:
        devices = input_devices(node)
    except (RuntimeError, AttributeError) as error:
        if by_script(error):
            raise
        devices = []  # a node that its graph has lost
    return next((d for d in devices if d.type != "cpu"), state.torch.device("cpu"))


def _node(root: Any) -> Any:
    return root.grad_fn if isinstance(root, state.torch.Tensor) else getattr(root, "node", None)


def _tensors(node: Any, slots: list[str], todo: list[Any]) -> Any:
    """The tensors that a node holds, and whether the graph lets go of them when backward has run."""
    for slot in slots:
        try:
            value = getattr(node, slot)
        except (RuntimeError, AttributeError) as error:
            if by_script(error):
                raise
            continue  # released already
        for variable in value if isinstance(value, (tuple, list)) else (value,):
            if variable is None:
                continue
            try:
                data = variable.data
            except RuntimeError as error:
                if by_script(error):
                    raise
                continue
            if isinstance(data, state.torch.Tensor):
                yield data, True
            hook = getattr(variable, "unpack_hook", None)
            if hook is not None:
                todo.extend(checkpoint_inputs(hook))
    # Attributes that a torch.autograd.Function has set on its context live as long as the node.
    own = getattr(node, "__dict__", None)
    if own:
        for tensor in inside(list(own.values())):
            yield tensor, False


def made(node: Any) -> tuple[int, int]:
    """The numbers of a node's name and of the module that made it."""
    sequence = node_number(node)
    return _name(node), _module(sequence) if state.instrumented else made_in(sequence)


def _name(node: Any) -> int:
    name = _names.get(type(node))
    if name is None:
        name = _names[type(node)] = tag_name(node.name())
    return name


def _module(sequence: int) -> int:
    mine = _thread.now()
    if sequence < 0 or not mine.sequence:
        return 0
    i = bisect_right(mine.sequence, sequence) - 1
    return mine.owners[i] if i >= 0 else 0


def _alive() -> set[int]:
    """Addresses held since an earlier run over the same graph; those that died are forgotten."""
    alive = set()
    for address, held in list(_held.items()):  # at once: threads with graphs of their own share it
        if not expired(held[3]):
            alive.add(address)
        elif _held.get(address) is held:
            _held.pop(address, None)
    return alive


@quiet
def released() -> None:
    """A run has released its graph. What somebody else still holds is no saved tensor any more, unless that is another
    graph: the head of a loss whose backward was told to retain it."""
    untagged: list[tags.Record] = []
    reached = _thread.now().reached
    for address, (size, name, module, ref, nodes) in list(_held.items()):
        if nodes and nodes <= reached:
            if not expired(ref):
                untagged.append((kinds.SAVED_TENSOR, address, size, name, module, 0))
            _held.pop(address, None)
        nodes -= reached
    tags.emit(untagged, untag=True)


def after_fork() -> None:
    """Names are numbered anew."""
    global _step
    _step += 1
    _learned.clear()
    _forwards.clear()
    _names.clear()
    _held.clear()
