"""In which module each node of autograd's graph was made. Nodes are numbered in the order in which a thread makes
them, so it is enough to note the numbers at which a module was entered and left. In bare steps no module is
entered: a forward pass that makes as many nodes as an instrumented one made them in the same modules."""

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
        self.number = next(_threads)  # no other thread gets it; an identifier is given again after its thread's end
        self._step = 0  # in which the rest was gathered
        # Sequence numbers at which a module was entered or left, and which.
        self.sequence: list[int] = []
        self.owners: list[int] = []
        self.reached: set[tuple[int, int]] = set()  # the nodes that its run, or one nested in it, reaches

    def now(self) -> ThreadNodes:
        """Itself, with nothing left of an earlier step: the thread that ends steps may be another."""
        if self._step != nodes.step:
            self._step = nodes.step
            self.sequence.clear()
            self.owners.clear()
            self.reached.clear()
        return self


class Nodes:
    """Which nodes were made where."""

    def __init__(self) -> None:
        self.step = next(_steps)  # changes when a step ends, and in a forked child
        # For forward passes in instrumented steps, by root and number of nodes: the sequence numbers, counted from
        # the first, at which a module was entered or left, and the modules.
        self._learned: dict[tuple[int, int], tuple[Sequence[int], Sequence[int]]] = {}
        # For this bare step: root, first node, first node after it.
        self._forwards: deque[tuple[int, int, int]] = deque(maxlen=64)

    def enter(self, module: int) -> int:
        """From here on new nodes belong to this module. Returns the sequence number of the first."""
        mine = thread_nodes.now()
        first = private.sequence_number()
        mine.sequence.append(first)
        mine.owners.append(module)
        return first

    def learn(self, root: int, first: int) -> None:
        """Notes where the nodes of a forward pass were made, for bare steps, which repeat it."""
        mine, key = thread_nodes.now(), (root, private.sequence_number() - first)
        if key not in self._learned and len(self._learned) < _MOST_LEARNED:
            i = bisect_left(mine.sequence, first)
            self._learned[key] = ([s - first for s in mine.sequence[i:]], mine.owners[i:])

    def repeated(self, root: int, first: int) -> None:
        """Notes which nodes a forward pass of a bare step has made."""
        self._forwards.append((root, first, private.sequence_number()))

    def unfinished(self, root: int, first: int, module: int) -> None:
        """The same for a pass that is running inside a module. It resembles a pass that was in that module at this
        node or at the one before, which is made before its memory is requested."""
        at = private.sequence_number() - first
        for (other, length), (offsets, owners) in list(self._learned.items()):
            around = slice(max(0, bisect_right(offsets, at - 1) - 1), bisect_right(offsets, at))
            if other == root and module in owners[around]:
                self._forwards.append((root, first, first + length))
                return

    def module_of(self, node: Any) -> int:
        """The number of the module that made a node; 0 = it is not known."""
        sequence = node_number(node)
        if recorder.level < MODULES:
            return self._repeated_module(sequence)
        mine = thread_nodes.now()
        if sequence < 0 or not mine.sequence:
            return 0
        i = bisect_right(mine.sequence, sequence) - 1
        return mine.owners[i] if i >= 0 else 0

    def _repeated_module(self, sequence: int) -> int:
        """The module in which a bare step's node was made: the same as in an instrumented step that made as many
        nodes, else the outermost one; 0 = none."""
        if runs.threads > 1:  # each thread counts nodes for itself
            return 0
        for root, first, last in reversed(list(self._forwards)):
            if first <= sequence < last:
                offsets, owners = self._learned.get((root, last - first), ((), ()))
                i = bisect_right(offsets, sequence - first) - 1
                return (owners[i] if i >= 0 else 0) or root
        return 0

    def step_ended(self, _number: int) -> None:
        """Graphs seldom outlive a step; those that do lose their modules, not their tags."""
        self.step = next(_steps)
        self._forwards.clear()


def below(todo: list[Any], most: int) -> Iterator[Any]:
    """The nodes of the graph at and below the given ones, each once, at most so many. It empties the given list."""
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
