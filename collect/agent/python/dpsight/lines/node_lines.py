"""Knows which line made each node of a graph, from the sequence numbers that each thread gives its nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from dpsight import nodes
from dpsight.recorder import recorder
from dpsight.torch_compat import node_number

_MOST_NODES = 1 << 20  # most nodes of one step whose lines are kept
_NO_NODE = 1 << 63  # no node has such a sequence number: torch gives it to tasks that run as soon as possible


class Table:
    """The lines that made the nodes of a thread in one step: the number of the first node, and the line."""

    __slots__ = ("__weakref__", "goes_on", "lines", "numbers", "step")

    def __init__(self) -> None:
        self.step = -1
        self.goes_on: bool | None = None  # whether code that now runs in the thread makes nodes; None = unknown
        self.numbers: list[int] = []
        self.lines: list[str] = []

    def add(self, number: int, line: str, step: int) -> None:
        """Nodes with this number or a higher one belong to this line. step: the present step; lines of earlier steps
        are dropped."""
        numbers = self.numbers
        if self.step != step or len(numbers) > _MOST_NODES:
            self.step = step
            self.numbers, self.lines = [number], [line]
        elif numbers[-1] == number:
            self.lines[-1] = line
        else:
            numbers.append(number)
            self.lines.append(line)

    def holds(self, number: int, mine: Table) -> bool:
        """Whether the table's thread may have made a node with this number. After its last line, a thread may have made
        an unknown number of nodes. mine: the table of the calling thread."""
        first, last = self.numbers[0], self.numbers[-1]
        if number < last or self is mine:
            return first <= number
        return first < last if self.goes_on is None else self.goes_on

    def line_of(self, number: int) -> str:
        """The line that made the node with this number."""
        return self.lines[bisect_right(self.numbers, number) - 1]


def made(number: int, tables: list[Table], mine: Table) -> str:
    """The line that made the node with this number; "" if it is unknown. Each thread numbers its own nodes, so the line
    is unknown if another thread made nodes with such numbers in this step."""
    those = [table for table in tables if table.holds(number, mine)]
    return those[0].line_of(number) if len(those) == 1 else ""


def below(roots: Any) -> Iterator[tuple[Any, int]]:
    """The nodes below the roots of a run that a known line may have made, with their numbers."""
    todo = [root.grad_fn if isinstance(root, recorder.torch.Tensor) else root.node for root in roots]
    for node in nodes.below(todo, _MOST_NODES):
        number = node_number(node)
        if 0 <= number < _NO_NODE:
            yield node, number
