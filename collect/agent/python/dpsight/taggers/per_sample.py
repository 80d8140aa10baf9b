"""Tags the tensors of libraries for differential privacy: the inputs and output gradients that their hooks hold,
per-sample gradients and norms, their sums, and the noise. adapters.py lists the attributes that have these tensors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from dpsight import adapters, kinds
from dpsight.adapters import Adapter
from dpsight.parameters import attached, gradients
from dpsight.recorder import events
from dpsight.registry import registry
from dpsight.tags import Record, tags
from dpsight.tensors import batched, inside, quiet, storages
from dpsight.torch_compat import Weak, expired, weak

# For each storage: address, bytes and a weak reference.
_Held = Sequence[tuple[int, int, Weak | None]]
_KEPT_INPUTS = tuple(attribute for attribute, kind in adapters.LAYERS.items() if kind == kinds.HOOK_ACTIVATION)


class Work(threading.local):
    """The private work that this thread is doing."""

    def __init__(self) -> None:
        self.parameters: list[Any] = []  # the parameters that clipping or noising processes in order
        self.reached = 0  # how many of them have got noise
        self.held: _Held = ()  # storages that the hook of the present layer holds
        self.sums: dict[int, list[Record]] = {}  # id(parameter) → records of its sum when the phase began


_work = Work()


def install() -> None:
    """Subscribes to libraries and to expanded weights."""
    events.dp_imported.subscribe(_imported)
    events.dp_phase_begins.subscribe(_phase_begins)
    events.dp_phase_ended.subscribe(_phase_ended)
    events.dp_clips.subscribe(_clips)
    events.dp_noise_made.subscribe(_noise_made)
    events.activations_kept.subscribe(_activations_kept)
    events.sampler_begins.subscribe(_sampler_begins)
    events.sampler_ended.subscribe(_sampler_ended)
    events.sample_made.subscribe(_sample_made)
    events.sample_set.subscribe(_sample_set)
    events.transform_ran.subscribe(_transform_ran)


def _imported(_adapter: Adapter) -> None:
    """Called when a library is imported, the first or another."""
    events.backward_ended.unsubscribe(_tag_left)
    events.backward_ended.subscribe(_tag_left)


# Phases of optimizers and engines.


@quiet
def _phase_begins(parameters: list[Any], phase: str) -> None:
    if phase == "noise":
        _work.parameters[:], _work.reached = parameters, 0
    _work.sums = {id(p): _summed(p) for p in parameters}


@quiet
def _phase_ended(parameters: list[Any], _phase: str) -> None:
    """Tags the results of clipping, accumulating and noising on the parameters. A sum that has become the gradient no
    longer counts as a sum."""
    _work.parameters.clear()
    out: list[Record] = []
    became: list[Record] = []
    for p in parameters:
        before, now = _work.sums.pop(id(p), []), _summed(p)
        if before and not now:
            gradient = {record[1] for record in tags.of(kinds.GRADIENT, p.grad)} if p.grad is not None else set()
            became += [record for record in before if record[1] in gradient]
        out += now
    tags.emit(became, untag=True)
    tags.emit(out + gradients.assigned(parameters))


def _summed(p: Any) -> list[Record]:
    if not p.__dict__:
        return []
    return [r for r in attached(p, registry.parameter(p), gradient=False) if r[0] == kinds.SUMMED_GRADIENT]


def _clips(p: Any) -> None:
    """Called when clipping reaches a parameter. Parameters are clipped in order, so the previous one's sum exists
    now."""
    if _work.parameters:
        tags.emit(_summed(_work.parameters.pop()))
    _work.parameters.append(p)


def _noise_made(noise: Any) -> None:
    """Called when a parameter's noise was made. Noise is made in order, so the previous parameter has its new gradient
    now."""
    named = 0
    out: list[Record] = []
    parameters, reached = _work.parameters, _work.reached
    if reached < len(parameters):
        named = registry.parameter(parameters[reached])
        if reached:
            out = gradients.assigned([parameters[reached - 1]])
        _work.reached += 1
    tags.emit(out + tags.within(kinds.NOISE, noise, named))


# Hooks of layers.


def _activations_kept(module: Any) -> None:
    tags.emit(tags.within(kinds.HOOK_ACTIVATION, _latest(module), 0, registry.known(module)))


def _latest(module: Any) -> list[Any]:
    """The inputs that a layer kept in its last call. If the layer keeps a list, it has the inputs of several calls."""
    held = [module.__dict__.get(attribute) for attribute in _KEPT_INPUTS]
    return [value[-1] if isinstance(value, list) else value for value in held if not isinstance(value, list) or value]


@quiet
def _sampler_begins(module: Any) -> None:
    """Notes the storages that a layer's hook is about to release. The hook of a book-keeping method keeps them."""
    _work.held = [(s.data_ptr(), s.nbytes(), weak(s)) for t in inside(_latest(module)) for s, _ in storages(t)]


@quiet
def _sampler_ended(module: Any) -> None:
    number = registry.known(module)
    held, _work.held = _work.held, ()
    hold: list[Record] = []
    for attribute, kind in adapters.LAYERS.items():
        hold += tags.within(kind, module.__dict__.get(attribute), 0, number)
    kept = {(a, size) for kind, a, size, *_ in hold if kind == kinds.HOOK_ACTIVATION}
    alive = [(a, size) for a, size, ref in held if not expired(ref)]
    tags.emit([(kinds.HOOK_ACTIVATION, *at, 0, number, 0) for at in alive if at not in kept], untag=True)
    out = [record for record in hold if record[0] != kinds.HOOK_ACTIVATION]
    for p in module.parameters():
        if p.__dict__:
            named = registry.parameter(p)
            out += [r for r in attached(p, named) if r[0] in (kinds.GRAD_SAMPLE, kinds.NORM_SAMPLE)]
    tags.emit(out)
    registry.normed(module)


# Per-sample gradients.


def _sample_made(p: Any, tensor: Any) -> None:
    """Tags per-sample gradients that were just made. If they are copied to another tensor of the same size, both exist
    at once."""
    tags.emit(tags.within(kinds.GRAD_SAMPLE, tensor, registry.parameter(p)))


@quiet
def _sample_set(p: Any) -> None:
    tags.emit([r for r in attached(p, registry.parameter(p)) if r[0] == kinds.GRAD_SAMPLE])


@quiet
def _transform_ran(inputs: Any, gradients_of: Any) -> None:
    """Tags gradients made under vmap as per-sample gradients, if vmap uses one tensor for all samples and makes a
    gradient for each sample. Only gradients of a model's parameters are tagged."""
    out: list[Record] = []
    for p, gradient in zip(inputs, gradients_of, strict=False):
        named = registry.parameter(p)
        if named and gradient is not None and batched(gradient) and not batched(p):
            out += tags.of(kinds.GRAD_SAMPLE, gradient, named)
    tags.emit(out)


@quiet
def _tag_left(_released: bool) -> None:
    """Tags what a per-sample method has left on parameters without calling the agent's hooks."""
    out: list[Record] = []
    for root in registry.roots():
        for p in root.parameters():
            if p.__dict__:
                out += [r for r in attached(p, registry.parameter(p)) if r[0] != kinds.GRADIENT]
    tags.emit(out)
