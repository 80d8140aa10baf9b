"""Follows torch's expanded weights (Opacus' grad_sample_mode "ew"), which store per-sample gradients on parameters.

No hook of Opacus sees these gradients: torch's own autograd functions compute a parameter's per-sample gradient and set
it. Without a tag it would count as an activation gradient until Opacus clips.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.patch import Patches
from dpsight.recorder import TAGS, events, guarded, recorder, stamps, thread


def install(module: Any, patches: Patches) -> None:
    """Wraps the function that sets p.grad_sample, before others import it by name."""
    function = module.set_grad_sample_if_exists
    patches.set(module, "set_grad_sample_if_exists", _setting(function, module.ExpandedWeight))


def _setting(function: Callable[..., None], expanded: type) -> Callable[..., None]:
    @functools.wraps(function)
    def setting(weight: Any, *args: Any, **kwargs: Any) -> None:
        passes = recorder.level < TAGS or thread.inside(kinds.SAMPLER_BEGIN)
        if passes or not isinstance(weight, expanded):
            return function(weight, *args, **kwargs)
        _begins()
        try:
            return function(weight, *args, **kwargs)
        finally:
            _ended(weight)

    return setting


@guarded("the hook of expanded weights", opens=(kinds.SAMPLER_BEGIN,))
def _begins() -> None:
    stamps.module(thread.enter(kinds.SAMPLER_BEGIN))


@guarded("the hook of expanded weights", opens=(kinds.SAMPLER_BEGIN,))
def _ended(weight: Any) -> None:
    events.sample_set.tell(weight.orig_weight)
    stamps.module(thread.end(kinds.SAMPLER_BEGIN))
