"""What hangs on parameters: gradients, and the attributes that Opacus gives them."""

from __future__ import annotations

import weakref
from typing import Any

from dpsight import kinds, tags
from dpsight.marks import tag_name
from dpsight.state import failed, state
from dpsight.tensors import quiet

# Opacus' attributes of a parameter, and what they are.
ATTRIBUTES = {
    "grad_sample": kinds.GRAD_SAMPLE,
    "_current_grad_sample": kinds.GRAD_SAMPLE,
    "_norm_sample": kinds.NORM_SAMPLE,
    "summed_grad": kinds.SUMMED_GRADIENT,
}

_tagged: dict[int, int] = {}  # id(parameter) → address of the gradient that its hook tagged in this step
_watched: list[tuple[Any, Any]] = []  # weak references to parameters, and the handles of their hooks


class GradientHook:
    """Runs when backward has written p.grad, often by taking over a temporary: only from here on it is a gradient.

    A class of its own, so that a parameter that has the hook is told from one that has not: ids are used again.
    """

    __slots__ = ()

    def __call__(self, p: Any) -> None:
        if state.torch.compiler.is_dynamo_compiling():
            return
        if state.instrumented and state.cuda:
            _accumulated(p)


@quiet
def _accumulated(p: Any) -> None:
    try:
        records = tags.of(kinds.GRADIENT, p.grad, _name(p)) if p.grad is not None else []
        if records:
            _tagged[id(p)] = records[0][1]
            tags.emit(records)
    except Exception as error:
        failed("tagging a gradient", error, fatal=False)


_hook = GradientHook()


def _name(p: Any) -> int:
    from dpsight import modules

    return modules.names.get(id(p), 0)


def watch(p: Any) -> None:
    """Sets the hook on a parameter that lies on a GPU, once."""
    if not p.is_cuda or not p.requires_grad or not p.is_leaf:
        return
    hooks = p._post_accumulate_grad_hooks
    if hooks is None or not any(type(h) is GradientHook for h in hooks.values()):
        _watched.append((weakref.ref(p), p.register_post_accumulate_grad_hook(_hook)))


@quiet
def _unwatch() -> None:
    """Takes the hooks off. Even one that returned at once would cost a bare step a microsecond a parameter."""
    for ref, handle in _watched:
        handle.remove()
        p = ref()
        if p is not None and not p._post_accumulate_grad_hooks:
            p._post_accumulate_grad_hooks = None  # with an empty dictionary the engine still calls Python
    _watched.clear()


@quiet
def attached(p: Any, name: int) -> list[tags.Record]:
    """Records of all that hangs on a parameter now."""
    out: list[tags.Record] = []
    if p.grad is not None:
        out += tags.of(kinds.GRADIENT, p.grad, name)
    own = p.__dict__
    if own:
        for attribute, kind in ATTRIBUTES.items():
            value = own.get(attribute)
            if value is not None:
                out += tags.within(kind, value, name)
    return out


@quiet
def assigned(parameters: list[Any]) -> list[tags.Record]:
    """Records of gradients that did not come from backward: a script or Opacus has assigned them."""
    out: list[tags.Record] = []
    for p in parameters:
        if p.grad is not None:
            for record in tags.of(kinds.GRADIENT, p.grad, _name(p)):
                if _tagged.get(id(p)) != record[1]:
                    out.append(record)
                    _tagged[id(p)] = record[1]
    return out


def step_ended() -> None:
    """Addresses are used again: what was tagged in a step says nothing in the next."""
    _tagged.clear()
    if not state.instrumented:
        _unwatch()


def name_of(p: Any, default: str) -> int:
    """The number of a parameter's name."""
    return _name(p) or tag_name(default)
