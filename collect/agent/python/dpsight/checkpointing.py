"""Marks of activation checkpointing: the exact scope of each recompute. A forward hook inside backward would be no
proof of one: per-sample methods run modules there too."""

from __future__ import annotations

import functools
from typing import Any

from dpsight import kinds, tags, timing, torch_compat
from dpsight.backward import arrive
from dpsight.marks import mark, tag_name
from dpsight.patch import Patches
from dpsight.state import failed, local, state
from dpsight.steps import steps
from dpsight.tensors import quiet


def install(checkpoint: Any, patches: Patches) -> None:
    """Hooks torch.utils.checkpoint; what this release does not have is left out."""
    base = getattr(checkpoint, torch_compat.RECOMPUTATION, None)
    if isinstance(base, type):
        patches.set(checkpoint, torch_compat.RECOMPUTATION, _recomputation(base))
    function = getattr(checkpoint, "CheckpointFunction", None)
    if function is not None:
        patches.set(function, "backward", staticmethod(_reentrant(function.backward)))


def _recomputation(base: Any) -> type:
    class Recomputation(base):
        """The scope of a non-reentrant recompute, one that stops early included."""

        def __init__(self, frame: Any, group: Any, *args: Any, **kwargs: Any) -> None:
            self._frame, self._group = frame, group  # the first is a weak reference
            super().__init__(frame, group, *args, **kwargs)

        def __enter__(self) -> Any:
            steps.keep_phases()  # a recompute is a part of the run around it
            local.recompute.append("")
            arrive()
            timing.module_stamp(mark(kinds.RECOMPUTE_BEGIN, 0, 0))
            return super().__enter__()

        def __exit__(self, *args: Any) -> Any:
            if local.recompute:
                local.recompute.pop()
            if state.instrumented and state.cuda:
                _tag(self._frame, self._group)
            timing.module_stamp(mark(kinds.RECOMPUTE_END, 0, 0))
            return super().__exit__(*args)

    return Recomputation


@quiet
def _tag(frame: Any, group: Any) -> None:
    """Tags what was recomputed: backward holds it, though no node does."""
    try:
        recomputed = torch_compat.recomputed(frame(), group)
        tags.emit(tags.within(kinds.SAVED_TENSOR, recomputed, tag_name("recomputed")))
    except Exception as error:
        failed("tagging recomputed tensors", error, fatal=False)


def _reentrant(function: Any) -> Any:
    @functools.wraps(function)
    def backward(ctx: Any, *args: Any) -> Any:
        steps.keep_phases()
        local.recompute.append("reentrant")
        depth = len(local.recompute)
        arrive()
        timing.module_stamp(mark(kinds.RECOMPUTE_BEGIN, 0, 1))
        try:
            return function(ctx, *args)
        finally:
            # Its own backward ends the recompute; without one, nothing else has.
            if len(local.recompute) >= depth and local.recompute[-1] == "reentrant":
                local.recompute.pop()
                timing.module_stamp(mark(kinds.RECOMPUTE_END, 0, 1))

    return backward
