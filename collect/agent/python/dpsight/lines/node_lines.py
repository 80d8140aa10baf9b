"""Which line made each node of a graph, by the sequence numbers that each thread gives its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from dpsight import nodes
from dpsight.recorder import recorder
from dpsight.torch_compat import node_number

_MOST_NODES = 1 << 20  # numbers of nodes kept of one step
_NO_NODE = 1 << 63  # sequence numbers from here on are no node's: torch runs such nodes as soon as it can


class Table:
    """The lines that made the nodes of a thread in one step: the number of the first node, and the line."""

    __slots__ = ("__weakref__", "goes_on", "lines", "numbers", "step")

    def __init__(self) -> None:
        self.step = -1
        self.goes_on: bool | None = None  # whether what runs in the thread now makes nodes; None = it is not known
        self.numbers: list[int] = []
        self.lines: list[str] = []

    def add(self, number: int, line: str, step: int) -> None:
        """Nodes with this number or a higher one belong to this line. step: this step, so that no node is kept
        longer."""
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
        """Whether the thread may have made a node of this number. It may have gone on after the last line; how many
        nodes it then made is unknown. mine: the table of the asking thread."""
        first, last = self.numbers[0], self.numbers[-1]
        if number < last or self is mine:
            return first <= number
        return first < last if self.goes_on is None else self.goes_on

    def line_of(self, number: int) -> str:
        """The line that made the node of this number."""
        return self.lines[bisect_right(self.numbers, number) - 1]


def made(number: int, tables: list[Table], mine: Table) -> str:
    """The line that made the node of this number; "" = it is not known. Each thread numbers its own, so where another
    has made nodes with such numbers in this step, it is not."""
    those = [table for table in tables if table.holds(number, mine)]
    return those[0].line_of(number) if len(those) == 1 else ""


def below(roots: Any) -> Iterator[tuple[Any, int]]:
    """The nodes of the graph below the roots of a run that some line made, with their numbers."""
    todo = [root.grad_fn if isinstance(root, recorder.torch.Tensor) else root.node for root in roots]
    for node in nodes.below(todo, _MOST_NODES):
        number = node_number(node)
        if 0 <= number < _NO_NODE:
            yield node, number
