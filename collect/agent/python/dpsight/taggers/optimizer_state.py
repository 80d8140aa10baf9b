"""Tags what optimizers keep: the state of their parameters, the parameters themselves, and state that belongs to no
parameter."""

from __future__ import annotations

from typing import Any

from dpsight import kinds
from dpsight.graph_safety import Safe
from dpsight.parameters import name_of
from dpsight.recorder import events, recorder
from dpsight.taggers.gradient_hooks import gradient_hooks
from dpsight.tags import Record, tags
from dpsight.tensors import MOST_ENTRIES, inside, quiet
from dpsight.torch_compat import OPTIMIZER_HOOKS

_CONTAINERS = (list, tuple, dict)
_STANDARD = {"defaults", "state", "param_groups"}  # attributes of every optimizer


class OptimizerState:
    """Tags the state of optimizers."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, str], int] = {}  # name's number by the parameter's name and the key of its state

    def install(self) -> None:
        """Subscribes to updates."""
        events.update_ended.subscribe(lambda optimizer: tags.emit(self.records(optimizer)))

    @quiet
    def records(self, optimizer: Any, safe: Safe | None = None) -> list[Record]:
        """Records of an optimizer's state and of its parameters, including those that no model has. If safe excludes a
        device, gradients and hooks there are left alone."""
        out: list[Record] = []
        position, all_readable = 0, True
        for group in optimizer.param_groups:
            for p in group["params"]:
                path = f"optimizer.{position}"
                position += 1
                readable = safe is None or safe(p.device)
                all_readable = all_readable and readable
                if not p.is_cuda:
                    continue
                named = name_of(p, path)
                if readable:
                    gradient_hooks.watch(p)
                if not tags.place_known(kinds.PARAMETER, p):
                    out += tags.lasting(kinds.PARAMETER, p, named)
                out += self._of_parameter(optimizer.state.get(p) or {}, named)
        if not all_readable:
            return out  # otherwise gradients would be taken for state
        try:
            return out + _own_state(optimizer)
        except Exception as error:  # attributes that other code adds to optimizers may raise when read
            recorder.spared("looking at what an optimizer keeps", error)
            return out

    def _of_parameter(self, state: Any, named: int) -> list[Record]:
        out: list[Record] = []
        for key, value in state.items():
            if isinstance(value, recorder.torch.Tensor):
                if value.is_cuda and not tags.place_known(kinds.OPTIMIZER_STATE, value):
                    out += tags.lasting(kinds.OPTIMIZER_STATE, value, self._name(named, str(key)))
            elif isinstance(value, _CONTAINERS):
                out += tags.within(kinds.OPTIMIZER_STATE, value, self._name(named, str(key)))
        return out

    def _name(self, named: int, key: str) -> int:
        found = self._names.get((named, key))
        if found is None:
            found = self._names[named, key] = recorder.tag_name(f"{recorder.text(named)}.{key}")
        return found


def _own_state(optimizer: Any) -> list[Record]:
    """Records of state that belongs to no parameter. The state is under a key of its own (in K-FAC a module), or in an
    attribute of the optimizer."""
    own = [(k, v) for k, v in optimizer.state.items() if not isinstance(k, recorder.torch.Tensor)]
    for key, value in vars(optimizer).items():
        filled = isinstance(value, _CONTAINERS) and 0 < len(value) <= MOST_ENTRIES
        kept = filled or isinstance(value, recorder.torch.Tensor)
        if kept and key not in _STANDARD and not key.startswith(OPTIMIZER_HOOKS):
            own.append((key, value))
    if not own:
        return []
    # The optimizer's lists of parameters and of their gradients are no state.
    theirs = {id(t) for g in optimizer.param_groups for p in g["params"] for t in (p, p.grad)}
    out: list[Record] = []
    for key, value in own:
        name = recorder.tag_name(f"optimizer.{key if isinstance(key, str) else type(key).__name__}")
        for tensor in inside(value):
            if id(tensor) not in theirs:
                out += tags.of(kinds.OPTIMIZER_STATE, tensor, name)
    return out


optimizer_state = recorder.part(OptimizerState)
