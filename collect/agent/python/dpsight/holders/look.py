"""Tags memory by who holds it, at a failed request or between two lines of the script. Bare steps have no tags, and a
script without models calls no hooks. So the look finds the tensors that an instrumented step would have tagged at its
beginning, those that models received in this step, those that autograd's graphs hold, and those that local variables of
running functions hold.

A look takes no device memory and keeps no references to tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from dpsight import kinds
from dpsight.graph_safety import Safe, nowhere, safe_devices
from dpsight.holders.frames import ours, places
from dpsight.recorder import codes, recorder
from dpsight.registry import registry
from dpsight.taggers.models import models
from dpsight.taggers.module_attrs import module_attrs
from dpsight.taggers.optimizer_state import optimizer_state
from dpsight.taggers.saved import saved
from dpsight.taggers.script_tensors import Walk, script_tensors
from dpsight.taggers.step_io import step_io
from dpsight.tags import Record, tags
from dpsight.tensors import addresses, grad_fns, plain_types, quiet
from dpsight.torch_compat import is_function, variables

_T = TypeVar("_T")


class Looks:
    """Remembers which looks have failed."""

    def __init__(self) -> None:
        self._failed: set[str] = set()

    def tried(self, what: str, look: Callable[[], _T], otherwise: _T) -> _T:
        """Returns what a look returns, or the value otherwise if it fails. After its first failure that look is not
        tried again, while all others continue."""
        if what in self._failed:
            return otherwise
        try:
            return look()
        except Exception as error:
            recorder.hook_failed("looking for what held the memory", error, then="the agent continues without it")
            self._failed.add(what)
            return otherwise


looks = Looks()


@quiet
def tag(recorded: bool, others: list[Any] | None = None) -> int:
    """Tags what memory is used for, and returns the number of the tags' mark. recorded: whether allocator events were
    being recorded, so that a block's birth is known. others: further tensors to tag even if nothing names them."""
    safe, tried = safe_devices(), looks.tried
    records = tried("models", lambda: [r for root in registry.roots() for r in models.records(root, safe)], [])
    records += tried(
        "optimizers", lambda: [r for o in registry.optimizers() for r in optimizer_state.records(o, safe)], []
    )
    records += step_io.records()
    variables_seen = _Variables({r[1] for r in records} | tags.owned())
    tried("functions", variables_seen.look, None)
    for what, more in (
        ("graphs", lambda: variables_seen.graphs(safe)),
        ("attributes", module_attrs.records),
        ("variables", lambda: variables_seen.records(recorded)),
    ):
        found = tried(what, more, [])
        variables_seen.known.update(r[1] for r in found)
        records += found
    records += script_tensors.records(variables_seen.known)
    if others is not None:
        variables_seen.known.update(r[1] for r in records)
        records += tried("living tensors", lambda: _others(variables_seen.known, safe, others), [])
    return tags.emit(records)


def _others(known: set[int], safe: Safe | None, tensors: list[Any]) -> list[Record]:
    """Records of tensors at addresses that are not known yet, and of what their graphs hold."""
    found = [t for t in tensors if t.is_cuda]
    out = [] if safe is nowhere else saved.below(grad_fns(found), safe, every=True)
    known.update(r[1] for r in out)
    for tensor in found:
        out += [(kinds.HELD, at, size, 0, 0, dtype) for at, size, dtype in addresses(tensor) if at not in known]
    return out


class _Variables(Walk):
    """Walks the variables of running functions."""

    def __init__(self, known: set[int]) -> None:
        super().__init__(known)
        self._found: list[tuple[str, str, Any]] = []
        self._globals: list[Any] = []  # script_tensors.py walks these
        self._within = ""

    def look(self) -> None:
        """Walks the variables of all running functions."""
        for frame, within in places():
            self._frame(frame, within)

    def _frame(self, frame: FrameType, within: str) -> None:
        """Walks a function's variables. dpsight's own functions are skipped: they hold the script's objects a second
        time."""
        code = frame.f_code
        if not is_function(code):
            self._globals += [v for v in list(frame.f_globals.values()) if type(v) in plain_types()]
            return
        if ours(frame) and code is not codes.run:
            return
        self._within = within
        where = getattr(code, "co_qualname", code.co_name)
        for key, value in variables(frame).items():
            self.visit(value, f"local {key} of {where}", 0)

    def tensor(self, tensor: Any, where: str) -> None:
        """Notes a tensor."""
        if type(tensor) in plain_types() and tensor.is_cuda:
            self._found.append((self._within, where, tensor))

    def graphs(self, safe: Safe | None) -> list[Record]:
        """Records of what the graphs of the found tensors hold."""
        if safe is nowhere:
            return []
        return saved.below(grad_fns([t for _, _, t in self._found] + self._globals + step_io.outputs()), safe)

    def records(self, recorded: bool) -> list[Record]:
        """Records of tensors without another purpose. For tensors made within a pass, events give better evidence."""
        out: list[Record] = []
        for within, where, tensor in self._found:
            nodes = grad_fns([tensor]) if within == "forward_temporaries" else []
            if within and recorded and not nodes:
                continue
            for address, size, dtype in addresses(tensor):
                if address in self.known:
                    continue
                self.known.add(address)
                if nodes:  # the operation that needs it got no memory: it is, or would be, held for backward
                    out.append((kinds.SAVED_TENSOR, address, size, *saved.made(nodes[0]), dtype))
                elif within:
                    category = recorder.tag_name(within)
                    out.append((kinds.USER, address, size, recorder.tag_name(where), category, dtype))
                else:
                    out.append((kinds.HELD, address, size, recorder.tag_name(where), 0, dtype))
        return out
