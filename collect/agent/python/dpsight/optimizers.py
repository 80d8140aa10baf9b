"""Marks of optimizers: step, zero_grad, and GradScaler. An update of the parameters is what ends a step."""

from __future__ import annotations

import sys
import weakref
from threading import get_ident as _ident
from types import CodeType, FrameType
from typing import Any

from dpsight import backward, gradients, kinds, tags, timing
from dpsight.interruptions import by_script
from dpsight.marks import mark, name, tag_name, text
from dpsight.patch import Patches, bracket, method
from dpsight.state import Calm, failed, local, state
from dpsight.steps import steps
from dpsight.tensors import MOST_ENTRIES, inside, quiet
from dpsight.torch_compat import OPTIMIZER_HOOKS, private, step_code

_numbers: dict[int, int] = {}  # id(optimizer) → number
_alive: dict[int, Any] = {}
_compiling: Any = None
_given = 0
updates = 0  # steps of any optimizer so far
_CONTAINERS = (list, tuple, dict)
_STANDARD = {"defaults", "state", "param_groups"}  # attributes of every optimizer
_step_code: CodeType | None = None  # the code of torch's wrapper around every step()


def install(patches: Patches) -> None:
    """Hooks every torch optimizer."""
    global _step_code, _compiling
    torch = state.torch
    _compiling = torch.compiler.is_dynamo_compiling
    module = sys.modules["torch.optim.optimizer"]  # torch.optim deletes the attribute
    cls = module.Optimizer
    _step_code = step_code(cls)
    patches.hook(module.register_optimizer_step_pre_hook(before))
    patches.hook(module.register_optimizer_step_post_hook(after))

    zero = cls.zero_grad
    inner = getattr(zero, "__wrapped__", None)  # it is kept out of Dynamo, and must stay so
    wrapped = bracket(inner or zero, kinds.ZERO_GRAD_BEGIN, kinds.ZERO_GRAD_END, 0, phase=True)
    patches.set(cls, "zero_grad", private.disable_dynamo(wrapped) if inner else wrapped)
    modules = torch.nn.Module
    zero = bracket(modules.zero_grad, kinds.ZERO_GRAD_BEGIN, kinds.ZERO_GRAD_END, 1, phase=True)
    patches.set(modules, "zero_grad", zero)

    scaler = torch.amp.GradScaler
    for attribute, number in (("step", 0), ("update", 1)):
        function = method(scaler, attribute)
        if function is not None:
            around = (_scaler_begins, _scaler_ended) if number == 0 else (None, None)
            patches.set(scaler, attribute, bracket(function, kinds.SCALER_BEGIN, kinds.SCALER_END, number, *around))


def number(optimizer: Any) -> int:
    """The optimizer's number, from 1; the name "optimizer N Class" is written with the first."""
    global _given
    key = id(optimizer)
    found = _numbers.get(key)
    if found is None:
        _given += 1
        found = _numbers[key] = _given
        _alive[key] = weakref.ref(optimizer, lambda _ref: _gone(key))
        name(f"optimizer {found} {type(optimizer).__name__}")
    return found


def _gone(key: int) -> None:
    _numbers.pop(key, None)
    _alive.pop(key, None)
    if state.alone == key:
        state.alone = 0
    if state.updating == key:
        state.updating = 0


def before(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Runs before each Optimizer.step."""
    if _compiling():
        return
    if state.dead:
        return
    key, thread = id(optimizer), _ident()  # what state says may change at any time, by another thread
    if state.alone == key and not state.updating and state.unphased == thread and not backward.running():
        state.updater = thread
        state.updating = key
        return
    try:
        if local.calls:
            from dpsight import forward

            forward.repair()
        mark_begin(own=1)
        if state.unphased == thread:
            state.alone = 0
        repair(own=1)
        if local.optimizer:
            steps.mark_both_ends()  # one mark would not tell which of two updates is inside the other
        in_backward = backward.running()
        flags = kinds.NESTED if local.optimizer > 0 else 0
        flags |= kinds.IN_BACKWARD if in_backward else 0
        state.active = True
        if in_backward:
            backward.arrive()
        local.optimizer += 1  # before the mark: an interrupt in between leaves an end too many, which is no harm
        k = mark(kinds.OPTIMIZER_BEGIN, flags, number(optimizer))
        if not in_backward:
            timing.stamp(k)
        if state.instrumented and state.cuda:
            tags.emit(gradients.assigned([p for g in optimizer.param_groups for p in g["params"]]))
    except Exception as error:
        failed("the optimizer hook", error)


def mark_begin(own: int = 0) -> None:
    """Marks the beginning of the update that goes on in this thread without a mark, if one does: more is to be marked
    inside it. own frames belong to a step that begins."""
    key = state.updating
    if key and state.updater == _ident():
        state.updating = state.alone = 0
        if _alive_steps(own):
            local.optimizer = 1
            mark(kinds.OPTIMIZER_BEGIN, 0, _numbers[key])


def settle() -> None:
    """Marks what has begun, and ends what was left by an exception."""
    mark_begin()
    if local.optimizer:
        repair()


def is_step(code: CodeType) -> bool:
    """Whether frames of this code are steps of an optimizer."""
    return code is _step_code


def alive() -> list[Any]:
    """The optimizers that have stepped and are alive."""
    return [o for o in (ref() for ref in list(_alive.values())) if o is not None]


def repair(own: int = 0) -> None:
    """Ends the steps that were left by an exception: torch runs no hook after them. own frames belong to a step that
    has not been counted yet."""
    if not local.optimizer or _step_code is None:
        return
    alive = _alive_steps(own)
    while local.optimizer > alive:
        local.optimizer -= 1
        mark(kinds.OPTIMIZER_END, kinds.REPAIRED | (kinds.NESTED if local.optimizer else 0))


def _alive_steps(own: int) -> int:
    """How many steps of optimizers this thread is inside of, but for so many."""
    frame: FrameType | None = sys._getframe(2)
    alive = -own
    while frame is not None:
        alive += frame.f_code is _step_code
        frame = frame.f_back
    return max(0, alive)


def after(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Runs after each Optimizer.step."""
    if _compiling():
        return
    if state.dead:
        return
    try:
        if local.optimizer > 1:
            repair()  # of one that failed inside, and whose failure this one has caught
        ended(optimizer)
    except Exception as error:
        failed("the optimizer hook", error)


def ended(optimizer: Any) -> None:
    """A step has ended, the innermost of those under way."""
    global updates
    try:
        updates += 1
        identity = id(optimizer)
        if state.updating == identity and state.updater == _ident():
            state.updating = 0
            if state.alone == identity and steps.ended_alone():
                return
            key = number(optimizer)
            timing.stamp(mark(kinds.UPDATED, 0, key))
            steps.updated(key)
            _choose_alone(optimizer)
            return
        local.optimizer = max(0, local.optimizer - 1)
        in_backward = backward.running()
        if state.instrumented and state.cuda:
            tags.emit(tag_optimizer(optimizer))
        flags = kinds.NESTED if local.optimizer > 0 else 0
        flags |= kinds.IN_BACKWARD if in_backward else 0
        key = number(optimizer)
        k = mark(kinds.OPTIMIZER_END, flags, key)
        if in_backward:
            backward.optimizers_inside += 1
            steps.keep_phases()  # the run around it tells of such an update
            return
        timing.stamp(k)
        if local.optimizer:
            return
        if local.dp_step or local.scaler:
            local.updated = key
        else:
            steps.updated(key)
            _choose_alone(optimizer)
    except Exception as error:
        failed("the optimizer hook", error)


def _choose_alone(optimizer: Any) -> None:
    """Has the next update of an optimizer marked at its end only, if that tells all."""
    if _step_code is not None and state.unphased == _ident() and steps.ends_alone(number(optimizer)):
        state.alone = id(optimizer)


@quiet
def tag_optimizer(optimizer: Any, calm: Calm | None = None) -> list[tags.Record]:
    """Records of an optimizer's state and of its parameters, those that no model has shown included. Where it is not
    calm, gradients and hooks are let alone."""
    out: list[tags.Record] = []
    position, still = 0, True
    for group in optimizer.param_groups:
        for p in group["params"]:
            path = f"optimizer.{position}"
            position += 1
            calms = calm is None or calm(p.device)
            still = still and calms
            if not p.is_cuda:
                continue
            named = gradients.name_of(p, path)
            if calms:
                gradients.watch(p)
            if not tags.settled(kinds.PARAMETER, p):
                out += tags.lasting(kinds.PARAMETER, p, named)
            for key, value in (optimizer.state.get(p) or {}).items():
                if isinstance(value, state.torch.Tensor):
                    if value.is_cuda and not tags.settled(kinds.OPTIMIZER_STATE, value):
                        out += tags.lasting(kinds.OPTIMIZER_STATE, value, _state_name(named, str(key)))
                elif isinstance(value, _CONTAINERS):
                    out += tags.within(kinds.OPTIMIZER_STATE, value, _state_name(named, str(key)))
    if not still:
        return out  # gradients would be taken for state
    try:
        return out + _own_state(optimizer)
    except Exception as error:  # what others hang on their optimizers may refuse to be looked at
        if by_script(error):
            raise
        return out


def _own_state(optimizer: Any) -> list[tags.Record]:
    """Records of the state that is of no parameter: under a key of its own (a module's, in K-FAC), or an attribute."""
    own = [(k, v) for k, v in optimizer.state.items() if not isinstance(k, state.torch.Tensor)]
    for key, value in vars(optimizer).items():
        filled = isinstance(value, _CONTAINERS) and 0 < len(value) <= MOST_ENTRIES
        kept = filled or isinstance(value, state.torch.Tensor)
        if kept and key not in _STANDARD and not key.startswith(OPTIMIZER_HOOKS):
            own.append((key, value))
    if not own:
        return []
    # Lists of parameters and of their gradients are no state.
    theirs = {id(t) for g in optimizer.param_groups for p in g["params"] for t in (p, p.grad)}
    out: list[tags.Record] = []
    for key, value in own:
        name = tag_name(f"optimizer.{key if isinstance(key, str) else type(key).__name__}")
        for tensor in inside(value):
            if id(tensor) not in theirs:
                out += tags.of(kinds.OPTIMIZER_STATE, tensor, name)
    return out


_state_names: dict[tuple[int, str], int] = {}


def _state_name(named: int, key: str) -> int:
    found = _state_names.get((named, key))
    if found is None:
        found = _state_names[named, key] = tag_name(f"{text(named)}.{key}")
    return found


def _scaler_begins(_args: tuple[Any, ...]) -> None:
    steps.mark_both_ends()
    local.scaler += 1
    local.updated = 0


def _scaler_ended(args: tuple[Any, ...]) -> tuple[int, int]:
    """GradScaler skips the optimizer when gradients are infinite. That ends a step too: its data were used."""
    local.scaler -= 1
    if local.scaler or local.dp_step:
        return 0, 0
    try:
        return 0, local.updated or (number(args[1]) if len(args) > 1 else 0)
    except Exception as error:
        failed("the scaler hook", error)
        return 0, 0


def after_fork() -> None:
    """Names are numbered anew."""
    global _given
    _numbers.clear()
    _alive.clear()
    _state_names.clear()
    _given = 0
