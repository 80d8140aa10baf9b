"""Tags gradients. In instrumented steps a hook on each parameter runs when backward has written its gradient. Assigned
gradients are tagged when an optimizer updates."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from dpsight.graph_safety import safe_devices
from dpsight.parameters import gradients
from dpsight.recorder import MODULES, TAGS, events, freeze_threads, guarded, recorder
from dpsight.registry import registry
from dpsight.tags import tags
from dpsight.tensors import quiet
from dpsight.torch_compat import forget_gradient_hooks, forgets_gradient_hooks, private
from dpsight.torch_compat import gradient_hooks as hooks_of


class GradientHook:
    """Runs when backward has written p.grad, often by taking over a temporary tensor. Only then is that tensor a
    gradient.

    GradientHook is a class, so that the hook can be recognised on a parameter: ids are used again.
    """

    __slots__ = ()

    def __call__(self, p: Any) -> None:
        if recorder.torch.compiler.is_dynamo_compiling():
            return
        if recorder.level >= TAGS:
            _accumulated(p)


@guarded("tagging a gradient")
@quiet
def _accumulated(p: Any) -> None:
    tags.emit(gradients.accumulated(p))


class GradientHooks:
    """The parameters that have the hook."""

    def __init__(self) -> None:
        self._hook = GradientHook()
        # Handles of hooks, and weak references to those parameters that belong to no model and no optimizer. Parameters
        # of models and optimizers have no weak reference, since torch swaps parameters to change a model's dtype or
        # device, and does not swap a parameter that has one.
        self._watched: list[tuple[Any, Any]] = []

    def install(self) -> None:
        """Subscribes to steps and updates."""
        events.step_begins.subscribe(self._step_begins)
        events.update_begins.subscribe(_tag_assigned)

    def watch(self, p: Any, owned: bool = True) -> None:
        """Sets the hook on a parameter on a GPU, at most once. Sets no hook in a bare step: after a failed request the
        engine may be at work. owned: whether a model or an optimizer has the parameter."""
        if recorder.level < MODULES or not p.is_cuda or not p.requires_grad or not p.is_leaf:
            return
        for hook in (hooks_of(p) or {}).values():
            if type(hook) is GradientHook:
                return
        if not private.functorch_wraps(p):  # backward writes no gradient to a parameter that a transform has wrapped
            handle = p.register_post_accumulate_grad_hook(self._hook)
            self._watched.append((handle, None if owned else weakref.ref(p)))

    def _step_begins(self, _number: int, recorded: bool) -> None:
        if recorded:
            gradients.forget()
            if recorder.level < MODULES:
                self.unwatch()

    @quiet
    def unwatch(self) -> None:
        """Removes the hooks. Even a hook that returned at once would cost a bare step a microsecond for each parameter.
        So does an empty dictionary of hooks, since the engine takes the interpreter's lock to look into it."""
        if not self._watched:
            return
        emptied = {}
        for handle, _ in self._watched:
            hooks = handle.hooks_dict_ref()
            handle.remove()
            if hooks is not None and not hooks:
                emptied[id(hooks)] = hooks
        parameters = list(self._parameters())
        self._watched.clear()
        if not forgets_gradient_hooks():
            return
        with freeze_threads():
            # Another thread's engine may be waiting for the lock while it holds the hooks. So the hooks stay if another
            # thread has called a model.
            if safe_devices() is not None or registry.called_elsewhere():
                return
            for p in parameters:
                hooks = hooks_of(p)
                if hooks is not None and not hooks and id(hooks) in emptied:
                    forget_gradient_hooks(p)

    def _parameters(self) -> Iterator[Any]:
        """The parameters that may have the hook."""
        for root in registry.roots():
            yield from root.parameters()
        for optimizer in registry.optimizers():
            for group in optimizer.param_groups:
                yield from group["params"]
        yield from (p for p in (ref() for _, ref in self._watched if ref is not None) if p is not None)


def _tag_assigned(optimizer: Any) -> None:
    tags.emit(gradients.assigned([p for g in optimizer.param_groups for p in g["params"]]))


gradient_hooks = recorder.part(GradientHooks)
