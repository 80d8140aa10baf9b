"""The privacy configuration, seen where Opacus is given it."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from dpsight import kinds, setups
from dpsight.marks import frame
from dpsight.patch import Patches
from dpsight.state import failed

_facts: dict[str, Any] = dict.fromkeys(
    (
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
)
_engine: Any = lambda: None  # noqa: E731 - a dead weak reference until there is an engine


def learn(**facts: Any) -> None:
    """Adds to what is known, and writes all of it."""
    for key, value in facts.items():
        if value is not None:
            _facts[key] = value
    frame(kinds.FRAME_PRIVACY, _facts)


def optimizer_made(optimizer: Any) -> None:
    """A DPOptimizer says how much noise and which norm."""
    norm = optimizer.max_grad_norm
    learn(
        noise_multiplier=_number(optimizer.noise_multiplier),
        max_grad_norm=_number(norm) if not isinstance(norm, (list, tuple)) else None,
        loss_reduction=optimizer.loss_reduction,
    )


def install(module: Any, patches: Patches) -> None:
    """Wraps opacus.privacy_engine.PrivacyEngine."""
    cls = module.PrivacyEngine
    for attribute in ("make_private", "make_private_with_epsilon"):
        patches.set(cls, attribute, setups.stage(_making(getattr(cls, attribute)), setups.PRIVACY))
    patches.set(cls, "get_epsilon", _asking(cls.get_epsilon))


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make_private(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        try:
            _made(self, kwargs, function)
        except Exception as error:
            failed("reading the privacy configuration", error, fatal=False)
        return result

    return make_private


def _made(engine: Any, given: dict[str, Any], function: Any) -> None:
    global _engine
    _engine = weakref.ref(engine)
    default = dict(function.__kwdefaults__ or {}) if hasattr(function, "__kwdefaults__") else {}
    loader = given.get("data_loader")
    learn(
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
        learn(delta=_number(delta), epsilon=_number(epsilon))
        return epsilon

    return get_epsilon


def ended() -> None:
    """The ε reached, if the script named a δ and the accountant answers within milliseconds: RDP does, PRV may not."""
    engine = _engine()
    if engine is None or _facts["delta"] is None or _facts["accountant"] != "rdp" or not engine.accountant.history:
        return
    learn(epsilon=_number(engine.accountant.get_epsilon(_facts["delta"])))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
