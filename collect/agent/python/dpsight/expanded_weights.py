"""Looks into torch's expanded weights (Opacus' grad_sample_mode "ew"), which hang per-sample gradients on parameters.

There are no hooks that Opacus could be seen by: torch's own autograd functions compute a parameter's per-sample
gradient and set it. Without these tags it would count as an activation gradient until Opacus clips.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import gradients, kinds, modules, tags, timing
from dpsight.marks import mark
from dpsight.patch import Patches
from dpsight.state import failed, local, state
from dpsight.tensors import quiet


def install(module: Any, patches: Patches) -> None:
    """Wraps the function that sets p.grad_sample, before others import it by name."""
    function = module.set_grad_sample_if_exists
    patches.set(module, "set_grad_sample_if_exists", _setting(function, module.ExpandedWeight))


def _setting(function: Callable[..., None], expanded: type) -> Callable[..., None]:
    @functools.wraps(function)
    def setting(weight: Any, *args: Any, **kwargs: Any) -> None:
        watching = state.instrumented and state.cuda and not state.dead
        if not watching or local.sampler or not isinstance(weight, expanded):
            return function(weight, *args, **kwargs)
        local.sampler += 1
        timing.module_stamp(mark(kinds.SAMPLER_BEGIN, 0, 0))
        try:
            return function(weight, *args, **kwargs)
        finally:
            local.sampler -= 1
            _tag(weight)
            timing.module_stamp(mark(kinds.SAMPLER_END, 0, 0))

    return setting


@quiet
def _tag(weight: Any) -> None:
    try:
        p = weight.orig_weight
        named = modules.names.get(id(p), 0)
        tags.emit([r for r in gradients.attached(p, named) if r[0] == kinds.GRAD_SAMPLE])
    except Exception as error:
        failed("tagging a per-sample gradient", error, fatal=False)
