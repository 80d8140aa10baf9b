"""Records the privacy configuration, from the calls that pass it to Opacus."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from dpsight import kinds, stages
from dpsight.patch import Patches
from dpsight.recorder import events, guarded, recorder

_FACTS = (
    "noise_multiplier",
    "max_grad_norm",
    "sample_rate",
    "poisson",
    "clipping",
    "grad_sample_mode",
    "loss_reduction",
    "accountant",
    "delta",
    "epsilon",
)


class Privacy:
    """The facts about privacy that are known so far."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = dict.fromkeys(_FACTS)
        self.engine: Callable[[], Any] = lambda: None  # a weak reference to Opacus' engine

    def learn(self, **facts: Any) -> None:
        """Adds to the known facts, and writes all of them."""
        for key, value in facts.items():
            if value is not None:
                self.facts[key] = value
        recorder.frame(kinds.FRAME_PRIVACY, self.facts)


_privacy = Privacy()


def watch_optimizers() -> None:
    """Learns from optimizers and engines, however they are made, and from the accountant when the process ends."""
    events.dp_configured.subscribe(_configured)
    events.process_ends.subscribe(_ended)


def _configured(facts: dict[str, Any]) -> None:
    """Called when an optimizer or an engine is made, with its noise and its clipping norm. Clipping norms by layer are
    no number."""
    _privacy.learn(**{fact: value if isinstance(value, str) else _number(value) for fact, value in facts.items()})


def install(module: Any, patches: Patches) -> None:
    """Wraps opacus.privacy_engine.PrivacyEngine."""
    cls = module.PrivacyEngine
    for attribute in ("make_private", "make_private_with_epsilon"):
        patches.set(cls, attribute, stages.stage(_making(getattr(cls, attribute)), stages.PRIVACY))
    patches.set(cls, "get_epsilon", _asking(cls.get_epsilon))


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make_private(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        _made(self, kwargs, function)
        return result

    return make_private


@guarded("reading the privacy configuration")
def _made(engine: Any, given: dict[str, Any], function: Any) -> None:
    _privacy.engine = weakref.ref(engine)
    default = dict(function.__kwdefaults__ or {}) if hasattr(function, "__kwdefaults__") else {}
    loader = given.get("data_loader")
    _privacy.learn(
        sample_rate=1 / len(loader) if loader is not None and hasattr(loader, "__len__") and len(loader) else None,
        poisson=bool(given.get("poisson_sampling", default.get("poisson_sampling", True))),
        clipping=given.get("clipping", default.get("clipping")),
        grad_sample_mode=given.get("grad_sample_mode", default.get("grad_sample_mode")),
        loss_reduction=given.get("loss_reduction", default.get("loss_reduction")),
        accountant=_mechanism(engine),
        delta=_number(given.get("target_delta")),
    )


def _mechanism(engine: Any) -> str | None:
    mechanism = getattr(getattr(engine, "accountant", None), "mechanism", None)
    return str(mechanism()) if callable(mechanism) else None


def _asking(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def get_epsilon(self: Any, delta: Any, *args: Any, **kwargs: Any) -> Any:
        epsilon = function(self, delta, *args, **kwargs)
        _asked(delta, epsilon)
        return epsilon

    return get_epsilon


@guarded("reading the privacy accountant")
def _asked(delta: Any, epsilon: Any) -> None:
    _privacy.learn(delta=_number(delta), epsilon=_number(epsilon))


@guarded("reading the privacy accountant")
def _ended() -> None:
    """Records the ε that was reached, if the script named a δ and the accountant is RDP, which answers within
    milliseconds. PRV may take longer."""
    engine, facts = _privacy.engine(), _privacy.facts
    if engine is None or facts["delta"] is None or facts["accountant"] != "rdp" or not engine.accountant.history:
        return
    _privacy.learn(epsilon=_number(engine.accountant.get_epsilon(facts["delta"])))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
