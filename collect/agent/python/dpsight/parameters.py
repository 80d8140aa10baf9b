"""Records of tensors that are attached to parameters: gradients, and the attributes of libraries for differential
privacy."""

from __future__ import annotations

from typing import Any

from dpsight import adapters, kinds
from dpsight.recorder import recorder
from dpsight.registry import registry
from dpsight.tags import Record, tags
from dpsight.tensors import quiet


class Gradients:
    """Which gradients were tagged in this step."""

    def __init__(self) -> None:
        self._tagged: dict[int, int] = {}  # id(parameter) → address of the gradient that was tagged

    def accumulated(self, p: Any) -> list[Record]:
        """Records of a gradient that backward has written to a parameter."""
        records = tags.of(kinds.GRADIENT, p.grad, registry.parameter(p)) if p.grad is not None else []
        if records:
            self._tagged[id(p)] = records[0][1]
        return records

    @quiet
    def assigned(self, parameters: list[Any]) -> list[Record]:
        """Records of gradients that a script or a library assigned, rather than backward."""
        out: list[Record] = []
        for p in parameters:
            if p.grad is not None:
                for record in tags.of(kinds.GRADIENT, p.grad, registry.parameter(p)):
                    if self._tagged.get(id(p)) != record[1]:
                        out.append(record)
                        self._tagged[id(p)] = record[1]
        return out

    def forget(self) -> None:
        """Forgets the tags: addresses are used again, so a tag of one step means nothing in the next."""
        self._tagged.clear()


def attached(p: Any, name: int, gradient: bool = True) -> list[Record]:
    """Records of everything that is attached to a parameter now, with its gradient if gradient is true. Call it with
    __torch_function__ turned off."""
    out: list[Record] = []
    if gradient and p.grad is not None:
        out += tags.of(kinds.GRADIENT, p.grad, name)
    own = p.__dict__
    if own:
        for attribute, kind in adapters.PARAMETERS.items():
            value = own.get(attribute)
            if value is not None:
                out += tags.within(kind, value, name)
    return out


def name_of(p: Any, default: str) -> int:
    """The number of a parameter's name."""
    return registry.parameter(p) or recorder.tag_name(default)


gradients = recorder.part(Gradients)
