"""The hooks that a script sets on tensors. Some tensors only such a hook keeps, and the autograd node that has it says
nobody which hooks it has: so they are noted when they are set; in bare steps those of leaves only, that may outlive the
step, for of a graph's the twins in instrumented steps tell more. The hook itself is not referred to, only, weakly, the
dictionary that torch keeps it in."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from dpsight import gradients
from dpsight.patch import Patches, method
from dpsight.state import local, state
from dpsight.tensors import plain_types, quiet

_MOST = 10_000  # dead and alive, before the dead ones are dropped: hooks of a step's graph die with it
_most = _MOST
# A weak reference to the dictionary, the key in it, and the number of the module inside of which the hook was set.
_set: deque[tuple[Any, int, int]] = deque()


def install(patches: Patches) -> None:
    """Takes the place of the methods that set hooks."""
    tensor = state.torch.Tensor
    for attribute in ("register_hook", "register_post_accumulate_grad_hook"):
        function = method(tensor, attribute)
        if function is not None:
            patches.set(tensor, attribute, _noted(function))


def _noted(function: Callable[..., Any]) -> Callable[..., Any]:
    compiling = state.torch.compiler.is_dynamo_compiling
    handles = state.torch.utils.hooks.RemovableHandle

    @functools.wraps(function)
    def register(self: Any, hook: Any) -> Any:
        handle = function(self, hook)
        # A subclass may give back something of its own.
        if (
            not compiling()
            and type(handle) is handles
            and type(hook) not in _OURS
            and (state.instrumented or _lasts(self))
        ):
            if len(_set) >= _most:
                _drop()
            _set.append((handle.hooks_dict_ref, handle.id, local.calls[-1][1] if local.calls else 0))
        return handle

    return register


def _lasts(tensor: Any) -> bool:
    return state.tagging and type(tensor) in plain_types() and _leaf(tensor)


@quiet
def _leaf(tensor: Any) -> bool:
    return tensor.is_leaf


_OURS = (gradients.GradientHook,)


def alive() -> Iterator[tuple[int, Any]]:
    """The hooks that are still set, and the numbers of their modules."""
    for _ in range(len(_set)):
        try:
            entry = _set.popleft()
        except IndexError:
            return  # another thread's walk has the rest
        hooks = entry[0]()
        if hooks is not None and (hook := hooks.get(entry[1])) is not None:
            _set.append(entry)
            yield entry[2], hook


def _drop() -> None:
    """Forgets the dead. Where most are alive, it is not tried again before there are twice as many."""
    global _most
    for _ in alive():
        pass
    _most = max(_MOST, 2 * len(_set))


def after_fork() -> None:
    """The parent's modules have other numbers."""
    global _most
    _most = _MOST
    _set.clear()
