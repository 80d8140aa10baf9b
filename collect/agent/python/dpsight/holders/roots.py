"""The device memory that Python can reach: the storages of living tensors, and what the graphs of tensors with a
grad_fn save."""

from __future__ import annotations

import gc
from typing import Any

from dpsight.graph_safety import Safe, nowhere
from dpsight.recorder import recorder
from dpsight.taggers.saved import node_device, saved
from dpsight.tensors import base, grad_fn, held, subclassed
from dpsight.torch_compat import node_number

_MOST_NODES = 50_000
_MOST_TENSORS = 3  # tensors of one block whose keepers are searched


class Block:
    """A storage on the device, and the objects that may keep it."""

    __slots__ = ("address", "bytes", "node", "root", "storage", "tensors", "viewed")

    def __init__(self, storage: Any, address: int, size: int) -> None:
        self.storage, self.address, self.bytes = storage, address, size
        self.tensors: list[Any] = []
        self.viewed: list[int] = []  # bytes of each of these tensors
        self.root: Any = None  # a tensor whose graph saves the storage
        self.node = ""  # the node that saves it


class Roots:
    """All reachable device memory at one moment."""

    def __init__(self, safe: Safe | None, tensors: list[Any]) -> None:
        # The garbage collector does not return objects that the script has frozen.
        self.complete = safe is not nowhere and gc.get_freeze_count() == 0
        self.blocks: dict[int, Block] = {}
        self.parameters: list[Any] = []
        self._plain = tensors
        self.living = [*tensors, *subclassed()]
        for tensor in self.living:
            if not base(tensor, "is_cuda"):
                continue
            if type(tensor) is recorder.torch.nn.Parameter:
                self.parameters.append(tensor)
            block = self._block(tensor)
            if block is not None and len(block.tensors) < _MOST_TENSORS:
                block.tensors.append(tensor)
                block.viewed.append(_viewed(tensor))
        if safe is not nowhere:
            self._walk(safe)

    def hidden(self) -> list[Any]:
        """The containers that refer to tensors only because of the look."""
        blocks = list(self.blocks.values())
        return [self._plain, self.living, self.parameters, *blocks, *(block.tensors for block in blocks)]

    def _block(self, tensor: Any) -> Block | None:
        found = None
        for storage, address, size in held(tensor):
            if size:
                found = self.blocks.get(address)
                if found is None:
                    found = self.blocks[address] = Block(storage, address, size)
        return found

    def _walk(self, safe: Safe | None) -> None:
        """Walks the graphs for what they save. The node that was made last is above all others: from its tensor,
        everything that the tensor keeps is found."""
        above = [(t, grad_fn(t)) for t in self.living if base(t, "requires_grad")]
        tops = [(t, node) for t, node in above if node is not None]
        tops.sort(key=lambda top: node_number(top[1]), reverse=True)
        seen: set[Any] = set()
        for top, first in tops:
            todo = [first]
            while todo:
                node = todo.pop()
                if node in seen:
                    continue
                if len(seen) >= _MOST_NODES:
                    self.complete = False
                    return
                seen.add(node)
                todo.extend(n for n, _ in node.next_functions if n is not None)
                if safe is None or safe(node_device(node)):
                    for tensor, _ in saved.tensors(node, todo):
                        self._saved(tensor, top, node)

    def _saved(self, tensor: Any, top: Any, node: Any) -> None:
        block = self._block(tensor) if base(tensor, "is_cuda") else None
        if block is not None and block.root is None:
            block.root, block.node = top, node.name()
            if not block.tensors:
                block.viewed.append(_viewed(tensor))


def _viewed(tensor: Any) -> int:
    """The bytes of a tensor's own elements."""
    if base(tensor, "layout") is not recorder.torch.strided:
        return 1 << 62
    return int(base(tensor, "numel")() * base(tensor, "element_size")())
