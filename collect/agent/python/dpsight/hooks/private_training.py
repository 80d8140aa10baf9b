"""Follows libraries that train with differential privacy, through their adapters. The module marks when the libraries'
hooks keep inputs and compute norms and per-sample gradients, and the parts of a step.

A library may bind its hooks to modules when it registers them. So classes are patched as soon as they are defined: each
module of a library right after its import, before another module imports its functions by name.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from dpsight import kinds, stages
from dpsight.adapters import Adapter, Classes, Does
from dpsight.patch import Patches, bracket, installed, method
from dpsight.recorder import PHASES, TAGS, drains, events, guarded, recorder, stamps, steps, thread
from dpsight.registry import registry


class Present:
    """The libraries for differential privacy that this process has imported, and their classes and running calls."""

    __slots__ = ("calls", "libraries", "patched")

    def __init__(self) -> None:
        self.libraries: set[str] = set()
        self.patched: weakref.WeakSet[type] = weakref.WeakSet()
        # Running phases and forward hooks, by object. A method and the overridden method that it calls count as one
        # call.
        self.calls: set[tuple[int, int | Does]] = set()


_present = Present()


def installing(adapter: Adapter) -> Callable[[Any, Patches], None]:
    """The function that patches the classes and functions defined by one of a library's modules."""

    def install(module: Any, patches: Patches) -> None:
        if adapter.name not in _present.libraries:
            _present.libraries.add(adapter.name)
            events.dp_imported.tell(adapter)
        steps.keep_phases()  # only marked runs of backward show what such a library does
        for cls in [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]:
            for classes in adapter.classes:
                _patch(cls, classes, patches)
        for name, does in adapter.functions.items():
            function = vars(module).get(name)
            if getattr(function, "__module__", None) == module.__name__:
                patches.set(module, name, _WRAPPERS[does](function, None))

    return install


def _patch(cls: type, classes: Classes, patches: Patches) -> None:
    """Patches a class if it is of this kind."""
    if not any(base.__name__ in classes.names for base in cls.__mro__):
        return
    _present.patched.add(cls)
    patches.on_undo(lambda: _present.patched.discard(cls))
    for name, does in classes.methods.items():
        function = method(cls, name)
        if function is not None:
            patches.set(cls, name, _WRAPPERS[does](function, classes))
    init = method(cls, "__init__")
    if classes.sets_up and cls.__name__ in classes.names and init is not None:
        patches.set(cls, "__init__", stages.stage(_made(cls, classes, init), stages.PRIVACY))


@guarded("hooking classes of a library")
def _patch_subclasses(base: type, classes: Classes, made: type) -> None:
    """Patches the classes between a class of a library and the class of an object that is being made, since other
    classes may extend them. Hooks bind their methods only after this."""
    patches = installed.new()
    try:
        for cls in made.__mro__:
            if issubclass(cls, base) and cls not in _present.patched:
                _patch(cls, classes, patches)
    except Exception:
        patches.undo()
        raise


def _made(cls: type, classes: Classes, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _patch_subclasses(cls, classes, type(self))
        function(self, *args, **kwargs)
        if classes.facts:
            _report(self, classes)

    return init


@guarded("reading the privacy configuration")
def _report(made: Any, classes: Classes) -> None:
    facts = {fact: getattr(made, attribute, None) for fact, attribute in classes.facts.items()}
    events.dp_configured.tell(facts)


# The step of an optimizer, and its phases.


def _step(function: Callable[..., Any], _classes: Classes | None) -> Callable[..., Any]:
    return bracket(function, kinds.DP_STEP_BEGIN, _optimizer, _step_begins, _step_ended)


def _zero_grad(function: Callable[..., Any], _classes: Classes | None) -> Callable[..., Any]:
    return bracket(function, kinds.ZERO_GRAD_BEGIN, 2)


def _two_passes(function: Callable[..., Any], _classes: Classes | None) -> Callable[..., Any]:
    return bracket(function, kinds.DP_BACKWARD_BEGIN)


def _optimizer(args: tuple[Any, ...]) -> int:
    return registry.optimizer(getattr(args[0], "original_optimizer", args[0]))


def _step_begins(_args: tuple[Any, ...]) -> None:
    if thread.spans.count(kinds.DP_STEP_BEGIN) == 1:
        thread.note_update(0)


def _step_ended(args: tuple[Any, ...]) -> tuple[int, int]:
    """Returns the flags and the optimizer for the mark of a step's end. A step without an update is a physical batch, a
    part of a logical batch."""
    if thread.inside(kinds.DP_STEP_BEGIN):
        return 0, 0
    key = thread.updated
    return (0 if key else kinds.SKIPPED), (0 if thread.inside(kinds.SCALER_BEGIN) else key)


def _phase(does: Does) -> Callable[..., Callable[..., Any]]:
    def wrap(function: Callable[..., Any], classes: Classes) -> Callable[..., Any]:
        @functools.wraps(function)
        def phased(self: Any, *args: Any, **kwargs: Any) -> Any:
            call = (id(self), does)
            if not recorder.level or call in _present.calls:
                return function(self, *args, **kwargs)
            _phase_begins(self, does, classes)
            _present.calls.add(call)
            try:
                return function(self, *args, **kwargs)
            finally:
                _present.calls.discard(call)
                _phase_ended(self, does, classes)

        return phased

    return wrap


@guarded("the hook of a library's phases", opens=(kinds.PHASE_BEGIN,))
def _phase_begins(owner: Any, does: Does, classes: Classes) -> None:
    stamps.stamp(thread.begin(kinds.PHASE_BEGIN, 0, recorder.name(does.value)))
    if recorder.level >= TAGS:
        events.dp_phase_begins.tell(list(_parameters(owner, classes)), does.value)


@guarded("the hook of a library's phases", opens=(kinds.PHASE_BEGIN,))
def _phase_ended(owner: Any, does: Does, classes: Classes) -> None:
    if recorder.level >= TAGS:
        events.dp_phase_ended.tell(list(_parameters(owner, classes)), does.value)
    stamps.stamp(thread.end(kinds.PHASE_BEGIN, 0, recorder.name(does.value)))


def _parameters(owner: Any, classes: Classes) -> Iterator[Any]:
    for listed in getattr(owner, classes.parameters):
        yield listed[1] if isinstance(listed, tuple) else listed  # (name, parameter), as torch lists them


def _asking(function: Callable[..., Any], _classes: Classes | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def asking(self: Any, p: Any) -> Any:
        if recorder.level >= TAGS and thread.inside(kinds.DP_STEP_BEGIN):
            events.dp_clips.tell(p)
        return function(self, p)

    return asking


def _noise(function: Callable[..., Any], _classes: Classes | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def noise(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if recorder.level >= TAGS:
            events.dp_noise_made.tell(result)
        return result

    return noise


# The hooks of layers.


def _keeping(function: Callable[..., Any], classes: Classes | None) -> Callable[..., Any]:
    """Wraps a library's forward hook, which keeps a layer's inputs."""
    layer = 0 if classes is None else 1  # the layer's position among the arguments
    grad_enabled = recorder.torch.is_grad_enabled

    @functools.wraps(function)
    def keep(*args: Any, **kwargs: Any) -> Any:
        passes = recorder.level < TAGS and (grad_enabled() or not _seen_when_bare())
        if passes or len(args) <= layer:
            return function(*args, **kwargs)
        call = (id(args[0]), id(args[layer]))
        if call in _present.calls:
            return function(*args, **kwargs)
        _present.calls.add(call)
        try:
            result = function(*args, **kwargs)
        finally:
            _present.calls.discard(call)
        events.activations_kept.tell(args[layer])
        return result

    return keep


def _seen_when_bare() -> bool:
    """Whether inputs that a hook keeps in an evaluation are recorded in a bare step as well: perhaps no instrumented
    step has an evaluation that could be matched with this one. Step times do not include evaluations, so the recording
    does not change them."""
    return recorder.level >= PHASES and recorder.tagging and recorder.cuda and drains.recording


def _sampler(function: Callable[..., Any], classes: Classes | None) -> Callable[..., Any]:
    """Wraps a library's backward hook, which computes norms or per-sample gradients and releases the inputs. The hook
    of a book-keeping method keeps the inputs and the output gradients."""
    layer = 0 if classes is None else 1

    @functools.wraps(function)
    def sample(*args: Any, **kwargs: Any) -> Any:
        passes = recorder.level < TAGS or thread.inside(kinds.SAMPLER_BEGIN) or len(args) <= layer
        if passes or (layer and not getattr(args[0], "hooks_enabled", True)):
            return function(*args, **kwargs)
        _sampler_begins(args[layer])
        try:
            return function(*args, **kwargs)
        finally:
            _sampler_ended(args[layer])

    return sample


@guarded("the hook of a library's samplers", opens=(kinds.SAMPLER_BEGIN,))
def _sampler_begins(module: Any) -> None:
    events.sampler_begins.tell(module)
    stamps.module(thread.enter(kinds.SAMPLER_BEGIN, registry.known(module)))


@guarded("the hook of a library's samplers", opens=(kinds.SAMPLER_BEGIN,))
def _sampler_ended(module: Any) -> None:
    events.sampler_ended.tell(module)
    stamps.module(thread.end(kinds.SAMPLER_BEGIN, 0, registry.known(module)))


def _storing(function: Callable[..., Any], _classes: Classes | None) -> Callable[..., Any]:
    """Wraps the function that copies per-sample gradients into a second tensor of the same size, so that two copies
    exist at once."""

    @functools.wraps(function)
    def store(*args: Any, **kwargs: Any) -> Any:
        if recorder.level < TAGS or "param" not in kwargs:
            return function(*args, **kwargs)
        p = kwargs["param"]
        events.sample_made.tell(p, kwargs.get("grad_sample"))
        result = function(*args, **kwargs)
        events.sample_made.tell(p, p.__dict__.get("_current_grad_sample"))
        return result

    return store


_WRAPPERS: dict[Does, Callable[..., Callable[..., Any]]] = {
    Does.KEEPS_INPUTS: _keeping,
    Does.TAKES_NORMS: _sampler,
    Does.RUNS_BACKWARD_TWICE: _two_passes,
    Does.STEPS: _step,
    Does.CLEARS: _zero_grad,
    Does.CLIPS: _phase(Does.CLIPS),
    Does.ACCUMULATES: _phase(Does.ACCUMULATES),
    Does.ADDS_NOISE: _phase(Does.ADDS_NOISE),
    Does.ASKS_FOR_SAMPLES: _asking,
    Does.STORES_SAMPLES: _storing,
    Does.MAKES_NOISE: _noise,
}
