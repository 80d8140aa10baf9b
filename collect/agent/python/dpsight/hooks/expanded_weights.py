"""Looks into torch's expanded weights (Opacus' grad_sample_mode "ew"), which hang per-sample gradients on parameters.

There are no hooks that Opacus could be seen by: torch's own autograd functions compute a parameter's per-sample
gradient and set it. Without these tags it would count as an activation gradient until Opacus clips.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.parameters import attached
from dpsight.patch import Patches
from dpsight.recorder import TAGS, guarded, recorder, stamps, thread
from dpsight.registry import registry
from dpsight.tags import tags
from dpsight.tensors import quiet


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
            _tag(weight)
            _ended()

    return setting


@guarded("the hook of expanded weights")
def _begins() -> None:
    stamps.module(thread.enter(kinds.SAMPLER_BEGIN))


@guarded("the hook of expanded weights")
def _ended() -> None:
    stamps.module(thread.end(kinds.SAMPLER_BEGIN))


@guarded("tagging a per-sample gradient", fatal=False)
@quiet
def _tag(weight: Any) -> None:
    p = weight.orig_weight
    tags.emit([r for r in attached(p, registry.parameter(p)) if r[0] == kinds.GRAD_SAMPLE])
