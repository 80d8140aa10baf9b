"""Looks into Opacus: what its hooks hold, where they compute norms and per-sample gradients, and the parts of its step.

Its hooks are bound to modules when they are registered, so classes are patched as soon as they are defined: each module
of Opacus right after its import, before another imports its functions by name.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from dpsight import gradients, kinds, modules, privacy, setups, tags, timing
from dpsight.backward import arrive
from dpsight.marks import mark, name
from dpsight.patch import Patches, bracket, method
from dpsight.state import failed, local, state
from dpsight.steps import steps
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

present = False
_patched: weakref.WeakSet[type] = weakref.WeakSet()


def install(module: Any, patches: Patches) -> None:
    """Patches the classes and functions that one of Opacus' modules defines."""
    global present
    present = True
    steps.keep_phases()  # what it brackets is told by the runs inside
    for cls in [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]:
        _patch(cls, patches)
    for function, wrap in (("create_or_accumulate_grad_sample", _staging), ("_generate_noise", _noise)):
        own = vars(module).get(function)
        if getattr(own, "__module__", None) == module.__name__:
            patches.set(module, function, wrap(own))
    two_pass = vars(module).get("DPTensorFastGradientClipping")
    if two_pass is not None:
        backward = bracket(two_pass.backward, kinds.DP_BACKWARD_BEGIN, kinds.DP_BACKWARD_END)
        patches.set(two_pass, "backward", backward)


def _patch(cls: type, patches: Patches) -> None:
    _patched.add(cls)
    _patch_optimizer(cls, patches)
    _patch_hooks(cls, patches)


def _patch_subclasses(base: type, made: type) -> None:
    """Patches what lies between a class of Opacus and the class of an object that is being made: others extend them
    too. Hooks bind their methods only after this."""
    patches = Patches()
    try:
        for cls in made.__mro__:
            if issubclass(cls, base) and cls not in _patched:
                _patch(cls, patches)
    except Exception as error:
        patches.undo()
        failed(f"hooking {made.__name__}", error, fatal=False)


def _watching() -> bool:
    return state.instrumented and state.cuda and not state.dead


def _patch_optimizer(cls: type, patches: Patches) -> None:
    for attribute, phase in _PHASES.items():
        function = method(cls, attribute)
        if function is not None:
            patches.set(cls, attribute, _phase(function, phase))
    if cls.__name__ == "DPOptimizer":
        patches.set(cls, "__init__", setups.stage(_made(cls, vars(cls)["__init__"]), setups.PRIVACY))
        patches.set(cls, "_get_flat_grad_sample", _flat(cls._get_flat_grad_sample))  # type: ignore[attr-defined]
    if not hasattr(cls, "original_optimizer") and not hasattr(cls, "signal_skip_step"):
        return
    step, zero_grad = method(cls, "step"), method(cls, "zero_grad")
    if step is not None:
        around = (_step_begins, _step_ended)
        patches.set(cls, "step", bracket(step, kinds.DP_STEP_BEGIN, kinds.DP_STEP_END, _optimizer, *around))
    if zero_grad is not None:
        patches.set(cls, "zero_grad", bracket(zero_grad, kinds.ZERO_GRAD_BEGIN, kinds.ZERO_GRAD_END, 2))


def _made(cls: type, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _patch_subclasses(cls, type(self))
        function(self, *args, **kwargs)
        try:
            privacy.optimizer_made(self)
        except Exception as error:
            failed("reading the privacy configuration", error, fatal=False)

    return init


def _optimizer(args: tuple[Any, ...]) -> int:
    from dpsight import optimizers

    return optimizers.number(getattr(args[0], "original_optimizer", args[0]))


def _step_begins(_args: tuple[Any, ...]) -> None:
    local.dp_step += 1
    if local.dp_step == 1:
        local.updated = 0


def _step_ended(args: tuple[Any, ...]) -> tuple[int, int]:
    """A step without an update is a physical batch: part of a logical one."""
    local.dp_step -= 1
    if local.dp_step:
        return 0, 0
    key = local.updated
    return (0 if key else kinds.SKIPPED), (0 if local.scaler else key)


# Phases and forward hooks under way, by object: an override and what it calls are one.
_calls: set[tuple[int, int | str]] = set()
# The parameters that the running phase works through, in order, and how many of them it has reached.
_current: list[Any] = []
_reached = 0


def _phase(function: Callable[..., Any], phase: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def phased(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _reached
        call = (id(self), phase)
        if state.dead or call in _calls:
            return function(self, *args, **kwargs)
        number = name(phase)
        arrive()
        timing.stamp(mark(kinds.PHASE_BEGIN, 0, number))
        if phase == "noise" and _watching():
            _current[:], _reached = self.params, 0
        _calls.add(call)
        try:
            return function(self, *args, **kwargs)
        finally:
            _calls.discard(call)
            _current.clear()
            if _watching():
                _tag_parameters(self)
            timing.stamp(mark(kinds.PHASE_END, 0, number))

    return phased


@quiet
def _tag_parameters(optimizer: Any) -> None:
    """Tags what clipping, accumulating and noising have left on the parameters."""
    try:
        out: list[tags.Record] = []
        parameters = optimizer.params
        for p in parameters:
            summed = p.__dict__.get("summed_grad")
            if summed is not None:
                out += tags.of(kinds.SUMMED_GRADIENT, summed, modules.names.get(id(p), 0))
        tags.emit(out + gradients.assigned(parameters))
    except Exception as error:
        failed("tagging summed gradients", error, fatal=False)


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """Clipping asks for each parameter's per-sample gradients in turn: by then the sum of the one before is there."""

    @functools.wraps(function)
    def flat(self: Any, p: Any) -> Any:
        if _watching() and local.dp_step:
            try:
                if _current:
                    previous = _current.pop()
                    summed = previous.__dict__.get("summed_grad")
                    if summed is not None:
                        tags.emit(tags.of(kinds.SUMMED_GRADIENT, summed, modules.names.get(id(previous), 0)))
                _current.append(p)
            except Exception as error:
                failed("tagging a summed gradient", error, fatal=False)
        return function(self, p)

    return flat


def _noise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Noise is made for each parameter in turn: by then the one before has its new gradient."""

    @functools.wraps(function)
    def noise(*args: Any, **kwargs: Any) -> Any:
        global _reached
        result = function(*args, **kwargs)
        if _watching():
            try:
                named = 0
                out: list[tags.Record] = []
                if _reached < len(_current):
                    named = modules.names.get(id(_current[_reached]), 0)
                    if _reached:
                        out = gradients.assigned([_current[_reached - 1]])
                    _reached += 1
                tags.emit(out + tags.within(kinds.NOISE, result, named))
            except Exception as error:
                failed("tagging noise", error, fatal=False)
        return result

    return noise


def _patch_hooks(cls: type, patches: Patches) -> None:
    if cls.__name__ == "AbstractGradSampleHooks":
        patches.set(cls, "__init__", setups.stage(_attaching(cls, vars(cls)["__init__"]), setups.PRIVACY))
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
        if not _watching() or call in _calls:
            return function(self, module, *args, **kwargs)
        _calls.add(call)
        try:
            result = function(self, module, *args, **kwargs)
        finally:
            _calls.discard(call)
        try:
            held = module.__dict__.get("activations")
            if held:
                tags.emit(tags.within(kinds.HOOK_ACTIVATION, held[-1], 0, modules.known(module)))
        except Exception as error:
            failed("tagging hook activations", error, fatal=False)
        return result

    return capture


def _sampler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Opacus' backward hook computes norms or per-sample gradients, and lets the activations go. A book-keeping one
    goes on holding them, and output gradients too."""

    @functools.wraps(function)
    def capture(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if not _watching() or local.sampler or not getattr(self, "hooks_enabled", True):
            return function(self, module, *args, **kwargs)
        local.sampler += 1
        number = modules.known(module)
        held = _held(module)
        timing.module_stamp(mark(kinds.SAMPLER_BEGIN, 0, number))
        try:
            return function(self, module, *args, **kwargs)
        finally:
            local.sampler -= 1
            _sampled(module, number, held)
            timing.module_stamp(mark(kinds.SAMPLER_END, 0, number))

    return capture


@quiet
def _held(module: Any) -> list[tuple[int, int, Weak | None]]:
    """Address, bytes and a weak reference of each storage that the hook is about to let go."""
    try:
        last = (module.__dict__.get("activations") or [[]])[-1]
        return [(s.data_ptr(), s.nbytes(), weak(s)) for t in last for s, _ in storages(t)]
    except Exception as error:
        failed("following hook activations", error, fatal=False)
        return []


@quiet
def _sampled(module: Any, number: int, held: list[tuple[int, int, Weak | None]]) -> None:
    try:
        own = module.__dict__
        kept = {(a, size) for _, a, size, *_ in tags.within(kinds.HOOK_ACTIVATION, own.get("activations"))}
        alive = [(a, size) for a, size, ref in held if not expired(ref)]
        tags.emit([(kinds.HOOK_ACTIVATION, *at, 0, number, 0) for at in alive if at not in kept], untag=True)
        out: list[tags.Record] = tags.within(kinds.STORED_BACKPROP, own.get("backprops"), 0, number)
        for p in module.parameters():
            if p.__dict__:
                named = modules.names.get(id(p), 0)
                out += [r for r in gradients.attached(p, named) if r[0] in (kinds.GRAD_SAMPLE, kinds.NORM_SAMPLE)]
        tags.emit(out)
        modules.normed(module)
    except Exception as error:
        failed("tagging per-sample gradients", error, fatal=False)


def _staging(function: Callable[..., Any]) -> Callable[..., Any]:
    """Per-sample gradients are copied into a second tensor of their size: both are there at once."""

    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        if not _watching() or "param" not in kwargs:
            return function(*args, **kwargs)
        p = kwargs["param"]
        named = modules.names.get(id(p), 0)
        _tag_sample(kwargs.get("grad_sample"), named)
        result = function(*args, **kwargs)
        _tag_sample(p.__dict__.get("_current_grad_sample"), named)
        return result

    return create


def _tag_sample(tensor: Any, named: int) -> None:
    try:
        tags.emit(tags.within(kinds.GRAD_SAMPLE, tensor, named))
    except Exception as error:
        failed("tagging per-sample gradients", error, fatal=False)
