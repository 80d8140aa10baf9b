"""Looks into Opacus: what its hooks hold, where they compute norms and per-sample gradients, and the parts of its step.

Its hooks are bound to modules when they are registered, so classes are patched as soon as they are defined: each module
of Opacus right after its import, before another imports its functions by name.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dpsight import kinds, stages
from dpsight.parameters import attached, gradients
from dpsight.patch import Patches, bracket, method
from dpsight.recorder import TAGS, events, guarded, recorder, stamps, steps, thread
from dpsight.registry import registry
from dpsight.tags import Record, tags
from dpsight.tensors import quiet, storages
from dpsight.torch_compat import Weak, expired, weak

_OPTIMIZERS = (
    "optimizer",
    "adaclipoptimizer",
    "perlayeroptimizer",
    "ddpoptimizer",
    "ddp_perlayeroptimizer",
    "optimizer_fast_gradient_clipping",
    "ddpoptimizer_fast_gradient_clipping",
    "fsdpoptimizer_fast_gradient_clipping",
)
_SAMPLERS = (
    "gsm_base",
    "grad_sample_module",
    "grad_sample_module_fast_gradient_clipping",
    "grad_sample_module_fast_gradient_clipping_fsdp",
    "grad_sample_module_fast_gradient_clipping_tp",
)
MODULES = (
    *(f"opacus.optimizers.{m}" for m in _OPTIMIZERS),
    *(f"opacus.grad_sample.{m}" for m in _SAMPLERS),
    "opacus.utils.fast_gradient_clipping_utils",
)
# Methods of optimizers, and the phase that each is.
_PHASES = {"clip_and_accumulate": "clip", "accumulate": "accumulate", "add_noise": "noise"}


class Opacus:
    """What is known of Opacus in this process."""

    __slots__ = ("calls", "patched", "present")

    def __init__(self) -> None:
        self.present = False
        self.patched: weakref.WeakSet[type] = weakref.WeakSet()
        # Phases and forward hooks under way, by object: an override and what it calls are one.
        self.calls: set[tuple[int, int | str]] = set()


class Work(threading.local):
    """The parameters that the phase which runs on this thread works through."""

    def __init__(self) -> None:
        self.current: list[Any] = []  # in order
        self.reached = 0  # how many of them


_opacus = Opacus()
_work = Work()

# Address, bytes and a weak reference of each storage.
_Held = Sequence[tuple[int, int, Weak | None]]


def install(module: Any, patches: Patches) -> None:
    """Patches the classes and functions that one of Opacus' modules defines."""
    if not _opacus.present:
        _opacus.present = True
        events.backward_ended.subscribe(_tag_samples)
    steps.keep_phases()  # what it brackets is told by the runs inside
    for cls in [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]:
        _patch(cls, patches)
    for function, wrap in (("create_or_accumulate_grad_sample", _staging), ("_generate_noise", _noise)):
        own = vars(module).get(function)
        if getattr(own, "__module__", None) == module.__name__:
            patches.set(module, function, wrap(own))
    two_pass = vars(module).get("DPTensorFastGradientClipping")
    if two_pass is not None:
        backward = bracket(two_pass.backward, kinds.DP_BACKWARD_BEGIN)
        patches.set(two_pass, "backward", backward)


def _patch(cls: type, patches: Patches) -> None:
    _opacus.patched.add(cls)
    _patch_optimizer(cls, patches)
    _patch_hooks(cls, patches)


def _patch_subclasses(base: type, made: type) -> None:
    """Patches what lies between a class of Opacus and the class of an object that is being made: others extend them
    too. Hooks bind their methods only after this."""
    patches = Patches()
    try:
        for cls in made.__mro__:
            if issubclass(cls, base) and cls not in _opacus.patched:
                _patch(cls, patches)
    except Exception as error:
        patches.undo()
        recorder.failed(f"hooking {made.__name__}", error, fatal=False)


def _patch_optimizer(cls: type, patches: Patches) -> None:
    for attribute, phase in _PHASES.items():
        function = method(cls, attribute)
        if function is not None:
            patches.set(cls, attribute, _phase(function, phase))
    if cls.__name__ == "DPOptimizer":
        patches.set(cls, "__init__", stages.stage(_made(cls, vars(cls)["__init__"]), stages.PRIVACY))
        patches.set(cls, "_get_flat_grad_sample", _flat(cls._get_flat_grad_sample))  # type: ignore[attr-defined]
    if not hasattr(cls, "original_optimizer") and not hasattr(cls, "signal_skip_step"):
        return
    step, zero_grad = method(cls, "step"), method(cls, "zero_grad")
    if step is not None:
        around = (_step_begins, _step_ended)
        patches.set(cls, "step", bracket(step, kinds.DP_STEP_BEGIN, _optimizer, *around))
    if zero_grad is not None:
        patches.set(cls, "zero_grad", bracket(zero_grad, kinds.ZERO_GRAD_BEGIN, 2))


def _made(cls: type, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _patch_subclasses(cls, type(self))
        function(self, *args, **kwargs)
        _report(self)

    return init


@guarded("reading the privacy configuration", fatal=False)
def _report(optimizer: Any) -> None:
    events.dp_optimizer_made.tell(optimizer)


def _optimizer(args: tuple[Any, ...]) -> int:
    return registry.optimizer(getattr(args[0], "original_optimizer", args[0]))


def _step_begins(_args: tuple[Any, ...]) -> None:
    if thread.spans.count(kinds.DP_STEP_BEGIN) == 1:
        thread.updated = 0


def _step_ended(args: tuple[Any, ...]) -> tuple[int, int]:
    """A step without an update is a physical batch: part of a logical one."""
    if thread.inside(kinds.DP_STEP_BEGIN):
        return 0, 0
    key = thread.updated
    return (0 if key else kinds.SKIPPED), (0 if thread.inside(kinds.SCALER_BEGIN) else key)


def _phase(function: Callable[..., Any], phase: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def phased(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = (id(self), phase)
        if not recorder.level or call in _opacus.calls:
            return function(self, *args, **kwargs)
        _phase_begins(self, phase)
        _opacus.calls.add(call)
        try:
            return function(self, *args, **kwargs)
        finally:
            _opacus.calls.discard(call)
            _phase_ended(self, phase)

    return phased


@guarded("the hook of Opacus' phases")
def _phase_begins(optimizer: Any, phase: str) -> None:
    stamps.stamp(thread.begin(kinds.PHASE_BEGIN, 0, recorder.name(phase)))
    if phase == "noise" and recorder.level >= TAGS:
        _work.current[:], _work.reached = optimizer.params, 0


@guarded("the hook of Opacus' phases")
def _phase_ended(optimizer: Any, phase: str) -> None:
    _work.current.clear()
    if recorder.level >= TAGS:
        _tag_parameters(optimizer)
    stamps.stamp(thread.end(kinds.PHASE_BEGIN, 0, recorder.name(phase)))


@guarded("tagging summed gradients", fatal=False)
@quiet
def _tag_parameters(optimizer: Any) -> None:
    """Tags what clipping, accumulating and noising have left on the parameters."""
    out: list[Record] = []
    parameters = optimizer.params
    for p in parameters:
        summed = p.__dict__.get("summed_grad")
        if summed is not None:
            out += tags.of(kinds.SUMMED_GRADIENT, summed, registry.parameter(p))
    tags.emit(out + gradients.assigned(parameters))


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """Clipping asks for each parameter's per-sample gradients in turn: by then the sum of the one before is there."""

    @functools.wraps(function)
    def flat(self: Any, p: Any) -> Any:
        if recorder.level >= TAGS and thread.inside(kinds.DP_STEP_BEGIN):
            _tag_previous_sum(p)
        return function(self, p)

    return flat


@guarded("tagging a summed gradient", fatal=False)
def _tag_previous_sum(p: Any) -> None:
    if _work.current:
        previous = _work.current.pop()
        summed = previous.__dict__.get("summed_grad")
        if summed is not None:
            tags.emit(tags.of(kinds.SUMMED_GRADIENT, summed, registry.parameter(previous)))
    _work.current.append(p)


def _noise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Noise is made for each parameter in turn: by then the one before has its new gradient."""

    @functools.wraps(function)
    def noise(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if recorder.level >= TAGS:
            _tag_noise(result)
        return result

    return noise


@guarded("tagging noise", fatal=False)
def _tag_noise(noise: Any) -> None:
    named = 0
    out: list[Record] = []
    current, reached = _work.current, _work.reached
    if reached < len(current):
        named = registry.parameter(current[reached])
        if reached:
            out = gradients.assigned([current[reached - 1]])
        _work.reached += 1
    tags.emit(out + tags.within(kinds.NOISE, noise, named))


def _patch_hooks(cls: type, patches: Patches) -> None:
    if cls.__name__ == "AbstractGradSampleHooks":
        patches.set(cls, "__init__", stages.stage(_attaching(cls, vars(cls)["__init__"]), stages.PRIVACY))
    forward, backward = method(cls, "capture_activations_hook"), method(cls, "capture_backprops_hook")
    if forward is not None:
        patches.set(cls, "capture_activations_hook", _activations(forward))
    if backward is not None:
        patches.set(cls, "capture_backprops_hook", _sampler(backward))


def _attaching(cls: type, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _patch_subclasses(cls, type(self))
        function(self, *args, **kwargs)

    return init


def _activations(function: Callable[..., Any]) -> Callable[..., Any]:
    """Opacus' forward hook keeps a layer's inputs."""

    @functools.wraps(function)
    def capture(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        call = (id(self), id(module))
        if recorder.level < TAGS or call in _opacus.calls:
            return function(self, module, *args, **kwargs)
        _opacus.calls.add(call)
        try:
            result = function(self, module, *args, **kwargs)
        finally:
            _opacus.calls.discard(call)
        _tag_activations(module)
        return result

    return capture


@guarded("tagging hook activations", fatal=False)
def _tag_activations(module: Any) -> None:
    held = module.__dict__.get("activations")
    if held:
        tags.emit(tags.within(kinds.HOOK_ACTIVATION, held[-1], 0, registry.known(module)))


def _sampler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Opacus' backward hook computes norms or per-sample gradients, and lets the activations go. A book-keeping one
    goes on holding them, and output gradients too."""

    @functools.wraps(function)
    def capture(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        passes = recorder.level < TAGS or thread.inside(kinds.SAMPLER_BEGIN)
        if passes or not getattr(self, "hooks_enabled", True):
            return function(self, module, *args, **kwargs)
        number, held = _sampler_begins(module)
        try:
            return function(self, module, *args, **kwargs)
        finally:
            _sampler_ended(module, number, held)

    return capture


@guarded("the hook of Opacus' samplers", otherwise=(0, ()))
def _sampler_begins(module: Any) -> tuple[int, _Held]:
    number = registry.known(module)
    held = _held(module)
    stamps.module(thread.enter(kinds.SAMPLER_BEGIN, number))
    return number, held


@guarded("the hook of Opacus' samplers")
def _sampler_ended(module: Any, number: int, held: _Held) -> None:
    _sampled(module, number, held)
    stamps.module(thread.end(kinds.SAMPLER_BEGIN, 0, number))


@guarded("following hook activations", fatal=False, otherwise=())
@quiet
def _held(module: Any) -> _Held:
    """The storages that the hook is about to let go."""
    last = (module.__dict__.get("activations") or [[]])[-1]
    return [(s.data_ptr(), s.nbytes(), weak(s)) for t in last for s, _ in storages(t)]


@guarded("tagging per-sample gradients", fatal=False)
@quiet
def _sampled(module: Any, number: int, held: _Held) -> None:
    own = module.__dict__
    kept = {(a, size) for _, a, size, *_ in tags.within(kinds.HOOK_ACTIVATION, own.get("activations"))}
    alive = [(a, size) for a, size, ref in held if not expired(ref)]
    tags.emit([(kinds.HOOK_ACTIVATION, *at, 0, number, 0) for at in alive if at not in kept], untag=True)
    out: list[Record] = tags.within(kinds.STORED_BACKPROP, own.get("backprops"), 0, number)
    for p in module.parameters():
        if p.__dict__:
            named = registry.parameter(p)
            out += [r for r in attached(p, named) if r[0] in (kinds.GRAD_SAMPLE, kinds.NORM_SAMPLE)]
    tags.emit(out)
    registry.normed(module)


@quiet
def _tag_samples(_released: bool) -> None:
    """Tags what a per-sample method left on parameters without passing our hooks (expanded weights)."""
    out: list[Record] = []
    for root in registry.roots():
        for p in root.parameters():
            if p.__dict__:
                out += [r for r in attached(p, registry.parameter(p)) if r[0] != kinds.GRADIENT]
    tags.emit(out)


def _staging(function: Callable[..., Any]) -> Callable[..., Any]:
    """Per-sample gradients are copied into a second tensor of their size: both are there at once."""

    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        if recorder.level < TAGS or "param" not in kwargs:
            return function(*args, **kwargs)
        p = kwargs["param"]
        _tag_sample(p, kwargs.get("grad_sample"))
        result = function(*args, **kwargs)
        _tag_current_sample(p)
        return result

    return create


@guarded("tagging per-sample gradients", fatal=False)
def _tag_current_sample(p: Any) -> None:
    _tag_sample(p, p.__dict__.get("_current_grad_sample"))


@guarded("tagging per-sample gradients", fatal=False)
def _tag_sample(p: Any, tensor: Any) -> None:
    tags.emit(tags.within(kinds.GRAD_SAMPLE, tensor, registry.parameter(p)))
