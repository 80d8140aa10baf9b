"""Notes the hooks that a script sets on tensors. Some tensors are kept alive only by a hook. The autograd node that has
the hook does not reveal it, so hooks are noted when they are set. In bare steps only hooks of leaves are noted, since
leaves may outlive the step. For other tensors, the matching hook of an instrumented step shows what the hook keeps.
tensor_hooks keeps no reference to a hook, only a weak reference to torch's dictionary of hooks."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from dpsight.patch import Patches, method
from dpsight.recorder import MODULES, guarded, recorder, thread
from dpsight.taggers.gradient_hooks import GradientHook
from dpsight.tensors import plain_types, quiet

_MOST = 10_000  # entries, living and dead, from which on dead ones are dropped: hooks die with their graph


class TensorHooks:
    """The hooks that were set on tensors."""

    def __init__(self) -> None:
        self._most = _MOST
        # A weak reference to the dictionary, the key in it, and the number of the module that was running when the
        # hook was set.
        self._set: deque[tuple[Any, int, int]] = deque()

    def __len__(self) -> int:
        return len(self._set)

    def install(self, patches: Patches) -> None:
        """Replaces the methods that set hooks."""
        tensor = recorder.torch.Tensor
        for attribute in ("register_hook", "register_post_accumulate_grad_hook"):
            function = method(tensor, attribute)
            if function is not None:
                patches.set(tensor, attribute, self._noted(function))

    def _noted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        compiling = recorder.torch.compiler.is_dynamo_compiling
        handles = recorder.torch.utils.hooks.RemovableHandle

        @functools.wraps(function)
        def register(tensor: Any, hook: Any) -> Any:
            handle = function(tensor, hook)
            # A subclass of tensors may return another type of handle.
            if not compiling() and type(handle) is handles and type(hook) is not GradientHook:
                self._note(tensor, handle)
            return handle

        return register

    @guarded("noting the hooks of tensors")
    def _note(self, tensor: Any, handle: Any) -> None:
        if recorder.level < MODULES and not _lasts(tensor):
            return
        if len(self._set) >= self._most:
            self._drop()
        self._set.append((handle.hooks_dict_ref, handle.id, thread.calls[-1][1] if thread.calls else 0))

    def alive(self) -> Iterator[tuple[int, Any]]:
        """The hooks that are still set, and the numbers of their modules."""
        for _ in range(len(self._set)):
            try:
                entry = self._set.popleft()
            except IndexError:
                return  # another thread's walk has taken the rest
            hooks = entry[0]()
            if hooks is not None and (hook := hooks.get(entry[1])) is not None:
                self._set.append(entry)
                yield entry[2], hook

    def _drop(self) -> None:
        """Forgets dead entries. If most entries are alive, it tries again only when there are twice as many."""
        for _ in self.alive():
            pass
        self._most = max(_MOST, 2 * len(self._set))


def _lasts(tensor: Any) -> bool:
    return recorder.tagging and type(tensor) in plain_types() and _leaf(tensor)


@quiet
def _leaf(tensor: Any) -> bool:
    return tensor.is_leaf


tensor_hooks = recorder.part(TensorHooks)
