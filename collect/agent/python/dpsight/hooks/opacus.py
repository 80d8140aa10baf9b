"""Looks into Opacus: when its hooks keep inputs and compute norms and per-sample gradients, and the parts of its step.

Its hooks are bound to modules when they are registered, so classes are patched as soon as they are defined: each module
of Opacus right after its import, before another imports its functions by name.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from dpsight import kinds, stages
from dpsight.patch import Patches, bracket, method
from dpsight.recorder import TAGS, events, guarded, recorder, stamps, steps, thread
from dpsight.registry import registry

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


_opacus = Opacus()


def install(module: Any, patches: Patches) -> None:
    """Patches the classes and functions that one of Opacus' modules defines."""
    if not _opacus.present:
        _opacus.present = True
        events.dp_imported.tell()
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


@guarded("hooking classes of Opacus")
def _patch_subclasses(base: type, made: type) -> None:
    """Patches what lies between a class of Opacus and the class of an object that is being made: others extend them
    too. Hooks bind their methods only after this."""
    patches = Patches()
    try:
        for cls in made.__mro__:
            if issubclass(cls, base) and cls not in _opacus.patched:
                _patch(cls, patches)
    except Exception:
        patches.undo()
        raise


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


@guarded("reading the privacy configuration")
def _report(optimizer: Any) -> None:
    events.dp_optimizer_made.tell(optimizer)


def _optimizer(args: tuple[Any, ...]) -> int:
    return registry.optimizer(getattr(args[0], "original_optimizer", args[0]))


def _step_begins(_args: tuple[Any, ...]) -> None:
    if thread.spans.count(kinds.DP_STEP_BEGIN) == 1:
        thread.note_update(0)


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


@guarded("the hook of Opacus' phases", opens=(kinds.PHASE_BEGIN,))
def _phase_begins(optimizer: Any, phase: str) -> None:
    stamps.stamp(thread.begin(kinds.PHASE_BEGIN, 0, recorder.name(phase)))
    if recorder.level >= TAGS:
        events.dp_phase_begins.tell(optimizer, phase)


@guarded("the hook of Opacus' phases", opens=(kinds.PHASE_BEGIN,))
def _phase_ended(optimizer: Any, phase: str) -> None:
    if recorder.level >= TAGS:
        events.dp_phase_ended.tell(optimizer, phase)
    stamps.stamp(thread.end(kinds.PHASE_BEGIN, 0, recorder.name(phase)))


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def flat(self: Any, p: Any) -> Any:
        if recorder.level >= TAGS and thread.inside(kinds.DP_STEP_BEGIN):
            events.dp_clips.tell(p)
        return function(self, p)

    return flat


def _noise(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def noise(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if recorder.level >= TAGS:
            events.dp_noise_made.tell(result)
        return result

    return noise


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
        events.activations_kept.tell(module)
        return result

    return capture


def _sampler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Opacus' backward hook computes norms or per-sample gradients, and lets the activations go. A book-keeping one
    goes on holding them, and output gradients too."""

    @functools.wraps(function)
    def capture(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        passes = recorder.level < TAGS or thread.inside(kinds.SAMPLER_BEGIN)
        if passes or not getattr(self, "hooks_enabled", True):
            return function(self, module, *args, **kwargs)
        _sampler_begins(module)
        try:
            return function(self, module, *args, **kwargs)
        finally:
            _sampler_ended(module)

    return capture


@guarded("the hook of Opacus' samplers", opens=(kinds.SAMPLER_BEGIN,))
def _sampler_begins(module: Any) -> None:
    events.sampler_begins.tell(module)
    stamps.module(thread.enter(kinds.SAMPLER_BEGIN, registry.known(module)))


@guarded("the hook of Opacus' samplers", opens=(kinds.SAMPLER_BEGIN,))
def _sampler_ended(module: Any) -> None:
    events.sampler_ended.tell(module)
    stamps.module(thread.end(kinds.SAMPLER_BEGIN, 0, registry.known(module)))


def _staging(function: Callable[..., Any]) -> Callable[..., Any]:
    """Per-sample gradients are copied into a second tensor of their size: both are there at once."""

    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        if recorder.level < TAGS or "param" not in kwargs:
            return function(*args, **kwargs)
        p = kwargs["param"]
        events.sample_made.tell(p, kwargs.get("grad_sample"))
        result = function(*args, **kwargs)
        events.sample_made.tell(p, p.__dict__.get("_current_grad_sample"))
        return result

    return create
