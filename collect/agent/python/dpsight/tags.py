"""A tag states which tensor lies at which address at which mark. A tag records an observation, from which ingest
derives an owner."""

from __future__ import annotations

import struct
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from dpsight import kinds
from dpsight.interruptions import by_script, uninterrupted
from dpsight.recorder import TAGS, drains, recorder
from dpsight.tensors import addresses, inside, plain_types, quiet
from dpsight.torch_compat import Weak, expired, private, weak

_TAG = struct.Struct("<IBBBxQQII")
_FLUSH = 64 << 10
_ENOUGH = 2  # tags of one place: beside an allocation of the same size the first may be ambiguous, the second is not

Record = tuple[int, int, int, int, int, int]
"""Kind, address, bytes, number of the name, number of the module, number of the dtype."""

# Categories that own a tensor besides autograd. If a script keeps such a tensor too, that adds no owner.
_OWNED = {
    kinds.PARAMETER,
    kinds.BUFFER,
    kinds.GRADIENT,
    kinds.OPTIMIZER_STATE,
    kinds.GRAD_SAMPLE,
    kinds.NORM_SAMPLE,
    kinds.SUMMED_GRADIENT,
    kinds.NOISE,
    kinds.INPUT,
    kinds.OUTPUT,
    kinds.USER,
}


class Tags:
    """Makes the records of tensors, and writes them."""

    def __init__(self) -> None:
        # Tags that are not written yet. Several threads may tag. Each appends, or takes, in one operation without a
        # lock: a lock would stay held if a signal handler of the script raised.
        self._buffer: deque[bytes] = deque()
        self._bytes = 0  # bytes in the buffer, approximately
        self._owned: set[int] = set()  # addresses tagged in an owned category since the step began
        self._outputs: set[int] = set()  # the outputs that a model returned since its latest call began
        # Tensors that live from step to step: (id, kind) → address of the data, weak reference to the storage, and
        # number of tags at this place.
        self._lasting: dict[tuple[int, int], tuple[int, Weak | None, int]] = {}

    def emit(self, records: Iterable[Record], untag: bool = False) -> int:
        """Writes tags under a separate mark, and returns the mark's number."""
        records = list(records)
        if not records:
            return 0
        k = recorder.mark(kinds.TAGS, 0, len(records))
        if not k:
            return 0
        op = 2 if untag else 1
        packed = b"".join(
            _TAG.pack(k, op, kind, dtype, address, size, name, module)
            for kind, address, size, name, module, dtype in records
        )
        self._owned.update(record[1] for record in records if record[0] in _OWNED)
        self._outputs.update(record[1] for record in records if record[0] == kinds.OUTPUT)
        self._buffer.append(packed)
        self._bytes += len(packed)
        if self._bytes >= _FLUSH:
            self.flush()
        return k

    def of(self, kind: int, tensor: Any, name: int = 0, module: int = 0) -> list[Record]:
        """The records of one tensor."""
        return [(kind, address, size, name, module, dtype) for address, size, dtype in addresses(tensor)]

    @quiet
    def within(self, kind: int, value: Any, name: int = 0, module: int = 0) -> list[Record]:
        """The records of all tensors inside a structure."""
        out: list[Record] = []
        for tensor in inside(value):
            out += self.of(kind, tensor, name, module)
        return out

    @quiet
    def user(self, tensor: Any, category: str, name: str) -> None:
        """Tags a tensor for dpsight.tag(). The category stands in the field for the module."""
        if recorder.level >= TAGS:
            self.emit(self.within(kinds.USER, tensor, recorder.tag_name(name), recorder.tag_name(category)))

    # Tensors that live from step to step are tagged until their place is known, since a tag holds for a block's whole
    # life.

    def place_known(self, kind: int, tensor: Any) -> bool:
        """Whether tags have recorded the place of a tensor that lives from step to step, and the tensor still lies
        there. Call it with __torch_function__ turned off."""
        found = self._lasting.get((id(tensor), kind))
        if found is None or found[2] < _ENOUGH or expired(found[1]):
            return False
        try:
            return tensor.data_ptr() == found[0]
        except RuntimeError as error:
            if by_script(error):
                raise
            return False  # another tensor with this id, without storage

    def lasting(self, kind: int, tensor: Any, name: int) -> list[Record]:
        """The records of a tensor that lives from step to step. Call it with __torch_function__ turned off, if its
        place is not known."""
        records = self.of(kind, tensor, name)
        # A tensor that torch.func wraps lives only as long as the transform.
        if len(records) == 1 and type(tensor) in plain_types() and not private.functorch_wraps(tensor):
            key, pointer = (id(tensor), kind), tensor.data_ptr()
            known, ref, times = self._lasting.get(key, (0, None, 0))
            if expired(ref) or known != pointer:
                ref, times = weak(tensor.untyped_storage()), 0
            self._lasting[key] = (pointer, ref, times + 1)
        return records

    def known_places(self) -> set[int]:
        """The addresses of tensors that live from step to step."""
        return {pointer for pointer, _, _ in list(self._lasting.values())}

    def forget_places(self) -> None:
        """Forgets places, so that tensors that live from step to step are tagged again."""
        self._lasting.clear()

    def step_ended(self, _number: int) -> None:
        """Forgets places if ranks train together. Sharding resizes storages: memory that returns at the same address is
        another block."""
        ranks = sys.modules.get("torch.distributed")
        if drains.recording and ranks is not None and ranks.is_available() and ranks.is_initialized():
            self.forget_places()

    # Tensors that have an owner besides autograd.

    def model_called(self, *_: Any) -> None:
        """Forgets the outputs of a model's previous call: if they still exist, they are the script's."""
        self._owned -= self._outputs
        self._outputs.clear()

    def owned(self) -> set[int]:
        """Addresses tagged in an owned category since the step began."""
        return self._owned

    def take_owned(self) -> set[int]:
        """Returns these addresses and forgets them, since a step begins."""
        owned, self._owned = self._owned, set()
        return owned

    # Writing.

    def flush(self) -> None:
        """Writes the buffer. Names are written first, since a kill in between would leave tags without their names."""
        with uninterrupted:
            self._bytes = 0
            full = b"".join(self._taken())
            if full:
                recorder.write_names()
                recorder.frame(kinds.FRAME_TAGS, full)

    def _taken(self) -> Iterator[bytes]:
        while True:
            try:
                yield self._buffer.popleft()
            except IndexError:
                return


tags = recorder.part(Tags)
