"""Knows in which module each node of autograd's graph was made. A thread numbers its nodes in order, so it suffices to
note the numbers at which it entered and left modules. Bare steps do not note modules: if a forward pass makes as many
nodes as one of an instrumented step, it made them in the same modules."""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from dpsight.recorder import MODULES, recorder, runs
from dpsight.torch_compat import node_number, private

_MOST_LEARNED = 64
_threads = itertools.count()


class ThreadNodes(threading.local):
    """What a thread knows about its own graphs."""

    def __init__(self) -> None:
        self.number = next(_threads)  # unique in this process, while a thread's identifier is used again after its end
        self._step = 0  # the step in which the rest was collected
        # Sequence numbers at which a module was entered or left, and the modules.
        self.sequence: list[int] = []
        self.owners: list[int] = []
        self.reached: set[tuple[int, int]] = set()  # the nodes that its run, or a run nested in it, reaches

    def now(self) -> ThreadNodes:
        """Returns the object, emptied of an earlier step's data: another thread may have ended that step."""
        if self._step != nodes.step:
            self._step = nodes.step
            self.sequence.clear()
            self.owners.clear()
            self.reached.clear()
        return self


class Nodes:
    """Which nodes were made in which module."""

    def __init__(self) -> None:
        self.step = next(_steps)  # changes when a step ends, and in a forked child
        # For forward passes in instrumented steps, by root and number of nodes: the sequence numbers, counted from
        # the first, at which a module was entered or left, and the modules.
        self._learned: dict[tuple[int, int], tuple[Sequence[int], Sequence[int]]] = {}
        # For this bare step: root, first node, first node after it.
        self._forwards: deque[tuple[int, int, int]] = deque(maxlen=64)

    def enter(self, module: int) -> int:
        """Enters a module: later nodes belong to it. Returns the sequence number of the first."""
        mine = thread_nodes.now()
        first = private.sequence_number()
        mine.sequence.append(first)
        mine.owners.append(module)
        return first

    def learn(self, root: int, first: int) -> None:
        """Notes where a forward pass made its nodes, for bare steps, which repeat the pass."""
        mine, key = thread_nodes.now(), (root, private.sequence_number() - first)
        if key not in self._learned and len(self._learned) < _MOST_LEARNED:
            i = bisect_left(mine.sequence, first)
            self._learned[key] = ([s - first for s in mine.sequence[i:]], mine.owners[i:])

    def repeated(self, root: int, first: int) -> None:
        """Notes which nodes a forward pass in a bare step has made."""
        self._forwards.append((root, first, private.sequence_number()))

    def unfinished(self, root: int, first: int, module: int) -> None:
        """Notes the nodes of a forward pass that is still running inside a module. unfinished takes a learned pass that
        was in that module at this node, or at the node before: a node is made before its memory is requested."""
        at = private.sequence_number() - first
        for (other, length), (offsets, owners) in list(self._learned.items()):
            around = slice(max(0, bisect_right(offsets, at - 1) - 1), bisect_right(offsets, at))
            if other == root and module in owners[around]:
                self._forwards.append((root, first, first + length))
                return

    def module_of(self, node: Any) -> int:
        """The number of the module that made a node; 0 if unknown."""
        sequence = node_number(node)
        if recorder.level < MODULES:
            return self._repeated_module(sequence)
        mine = thread_nodes.now()
        if sequence < 0 or not mine.sequence:
            return 0
        i = bisect_right(mine.sequence, sequence) - 1
        return mine.owners[i] if i >= 0 else 0

    def _repeated_module(self, sequence: int) -> int:
        """The module in which a bare step's node was made; 0 = none. The module is the one in an instrumented step that
        made as many nodes, or else the outermost."""
        if runs.threads > 1:  # each thread counts nodes for itself
            return 0
        for root, first, last in reversed(list(self._forwards)):
            if first <= sequence < last:
                offsets, owners = self._learned.get((root, last - first), ((), ()))
                i = bisect_right(offsets, sequence - first) - 1
                return (owners[i] if i >= 0 else 0) or root
        return 0

    def step_ended(self, _number: int) -> None:
        """Forgets the step's nodes. The few graphs that outlive a step lose their modules, but not their tags."""
        self.step = next(_steps)
        self._forwards.clear()


def below(todo: list[Any], most: int) -> Iterator[Any]:
    """The given nodes and all nodes below them, each once, and at most most nodes. below empties todo."""
    seen: set[Any] = set()
    while todo and len(seen) < most:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo.extend(n for n, _ in node.next_functions)
        yield node


_steps = itertools.count(1)
thread_nodes = ThreadNodes()
nodes = recorder.part(Nodes)
