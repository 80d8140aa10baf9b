"""Tags the parameters and buffers of models and what is attached to their parameters, at a model's first call in a step
and when a step begins. Also tags the inputs and results of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.graph_safety import Safe
from dpsight.parameters import attached
from dpsight.recorder import TAGS, drains, events, recorder, runs
from dpsight.registry import registry
from dpsight.taggers.gradient_hooks import gradient_hooks
from dpsight.tags import Record, tags
from dpsight.tensors import quiet
from dpsight.torch_compat import private

_EVALUATIONS = 8  # evaluations of a model that get tags in bare steps


class Models:
    """Which models were tagged in this step, and which of them evaluate."""

    def __init__(self) -> None:
        self._tagged: set[int] = set()  # id(module) of roots
        # By number: how many calls of a root that train nothing had tags. Calls that train in bare steps are matched
        # with instrumented steps, but an evaluation after an epoch resembles no call in an instrumented step.
        self._evaluations: dict[int, int] = {}
        self._evaluates = False  # whether the running call is such an evaluation
        self._grads: Callable[[], bool]

    def install(self) -> None:
        """Subscribes to calls and steps."""
        self._grads = recorder.torch.is_grad_enabled
        events.model_called.subscribe(self._called)
        events.model_returned.subscribe(self._returned)
        events.step_begins.subscribe(self._step_begins)

    def _called(self, root: Any, args: Any) -> None:
        if recorder.level >= TAGS:
            # Inside torch.func a model may get other parameters for the time of each call.
            known = id(root) in self._tagged and private.functorch_level() is None
            tags.emit(tags.within(kinds.INPUT, args) + ([] if known else self.records(root)))
            if not self._grads():
                self._evaluations[registry.known(root)] = _EVALUATIONS  # bare steps are matched with this call
        elif recorder.cuda and recorder.tagging and drains.recording and not self._grads():
            number = registry.known(root)
            count = self._evaluations.get(number, 0)
            self._evaluates = count < _EVALUATIONS
            if self._evaluates:
                self._evaluations[number] = count + 1
                tags.emit(tags.within(kinds.INPUT, args))

    def _returned(self, kwargs: dict[str, Any], out: Any) -> None:
        evaluates, self._evaluates = self._evaluates, False
        if recorder.level >= TAGS or evaluates:
            # Hugging Face's models get only keyword arguments.
            tags.emit(tags.within(kinds.INPUT, kwargs) + tags.within(kinds.OUTPUT, out))

    def _step_begins(self, _number: int, recorded: bool) -> None:
        """Tags all models seen so far. If several threads train, each tags only its own models: the engine may be
        replacing the gradients of the others, without a lock against readers."""
        if not recorded:
            return
        self._tagged.clear()
        if recorder.level >= TAGS:
            for root in registry.roots():
                if runs.threads < 2 or registry.called_here(root):
                    tags.emit(self.records(root))

    @quiet
    def records(self, root: Any, safe: Safe | None = None) -> list[Record]:
        """Records of a model's parameters and buffers, and of everything attached to its parameters. records also sets
        the parameters' gradient hooks. If safe excludes a device, gradients and hooks there are left alone."""
        if safe is None and private.functorch_level() is None:
            self._tagged.add(id(root))
        out: list[Record] = []
        for p, name in registry.name_parameters(root):
            readable = safe is None or safe(p.device)
            if readable:
                gradient_hooks.watch(p)
            if not tags.place_known(kinds.PARAMETER, p):
                out += tags.lasting(kinds.PARAMETER, p, name)
            out += attached(p, name, readable)
        for path, buffer in root.named_buffers():
            if not tags.place_known(kinds.BUFFER, buffer):
                out += tags.lasting(kinds.BUFFER, buffer, recorder.tag_name(registry.labelled(path, root)))
        return out


models = recorder.part(Models)
