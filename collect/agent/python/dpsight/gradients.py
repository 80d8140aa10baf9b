"""What hangs on parameters: gradients, and the attributes that Opacus gives them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from dpsight import kinds, tags
from dpsight.marks import tag_name
from dpsight.state import failed, state
from dpsight.tensors import quiet
from dpsight.torch_compat import forget_gradient_hooks, forgets_gradient_hooks, gradient_hooks

# Opacus' attributes of a parameter, and what they are.
ATTRIBUTES = {
    "grad_sample": kinds.GRAD_SAMPLE,
    "_current_grad_sample": kinds.GRAD_SAMPLE,
    "_norm_sample": kinds.NORM_SAMPLE,
    "summed_grad": kinds.SUMMED_GRADIENT,
}

_tagged: dict[int, int] = {}  # id(parameter) → address of the gradient that its hook tagged in this step
# Handles of hooks, and weak references to those parameters that no model and no optimizer has. Not to the others: torch
# swaps no parameter that something refers to weakly (a model's dtype or device is changed so).
_watched: list[tuple[Any, Any]] = []


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


def watch(p: Any, owned: bool = True) -> None:
    """Sets the hook on a parameter that lies on a GPU, once. Not where a bare step fails: the engine may be at work.
    owned: a model or an optimizer has the parameter."""
    if not state.instrumented or not p.is_cuda or not p.requires_grad or not p.is_leaf:
        return
    hooks = gradient_hooks(p)
    if hooks is None or not any(type(h) is GradientHook for h in hooks.values()):
        _watched.append((p.register_post_accumulate_grad_hook(_hook), None if owned else weakref.ref(p)))


@quiet
def _unwatch() -> None:
    """Takes the hooks off. Even one that returned at once would cost a bare step a microsecond a parameter, and so does
    an empty dictionary of hooks: the engine takes the interpreter's lock to look into it."""
    if not _watched:
        return
    emptied = {}
    for handle, _ in _watched:
        hooks = handle.hooks_dict_ref()
        handle.remove()
        if hooks is not None and not hooks:
            emptied[id(hooks)] = hooks
    parameters = list(_parameters())
    _watched.clear()
    if not forgets_gradient_hooks():
        return
    from dpsight import allocator, backward, modules

    with allocator.still():
        # Another thread's engine may be waiting for the lock with the hooks in its hands: all stays as it is where any
        # other thread has called a model.
        if backward.calm() is not None or modules.called_elsewhere():
            return
        for p in parameters:
            hooks = gradient_hooks(p)
            if hooks is not None and not hooks and id(hooks) in emptied:
                forget_gradient_hooks(p)


def _parameters() -> Iterator[Any]:
    """The parameters that may have our hook."""
    from dpsight import modules, optimizers

    for root in modules.roots():
        yield from root.parameters()
    for optimizer in optimizers.alive():
        for group in optimizer.param_groups:
            yield from group["params"]
    yield from (p for p in (ref() for _, ref in _watched if ref is not None) if p is not None)


@quiet
def attached(p: Any, name: int, gradient: bool = True) -> list[tags.Record]:
    """Records of all that hangs on a parameter now; without gradient, of all but that."""
    out: list[tags.Record] = []
    if gradient and p.grad is not None:
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
