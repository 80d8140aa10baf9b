"""Marks the beginning and the end of each recompute of activation checkpointing. A module's call inside backward does
not prove a recompute: per-sample methods run modules there too."""

from __future__ import annotations

import functools
from typing import Any

from dpsight import kinds, torch_compat
from dpsight.patch import Patches
from dpsight.recorder import TAGS, events, guarded, recorder, stamps, steps, thread


def install(checkpoint: Any, patches: Patches) -> None:
    """Hooks torch.utils.checkpoint. install skips parts that the installed torch lacks."""
    base = getattr(checkpoint, torch_compat.RECOMPUTATION, None)
    if isinstance(base, type):
        patches.set(checkpoint, torch_compat.RECOMPUTATION, _recomputation(base))
    function = getattr(checkpoint, "CheckpointFunction", None)
    if function is not None:
        patches.set(function, "backward", staticmethod(_reentrant(function.backward)))


def _recomputation(base: Any) -> type:
    class Recomputation(base):
        """The context of a non-reentrant recompute, which may stop early."""

        def __init__(self, frame: Any, group: Any, *args: Any, **kwargs: Any) -> None:
            self._frame, self._group = frame, group  # frame is a weak reference
            super().__init__(frame, group, *args, **kwargs)

        def __enter__(self) -> Any:
            _begins(reentrant=False)
            return super().__enter__()

        def __exit__(self, *args: Any) -> Any:
            _ended(self._frame, self._group)
            return super().__exit__(*args)

    return Recomputation


@guarded("the hook of checkpoints", opens=(kinds.RECOMPUTE_BEGIN,))
def _begins(reentrant: bool) -> None:
    steps.keep_phases()  # only the marks of the run around a recompute show its place
    thread.recomputes.append(reentrant)
    stamps.module(thread.begin(kinds.RECOMPUTE_BEGIN, 0, int(reentrant)))


@guarded("the hook of checkpoints", opens=(kinds.RECOMPUTE_BEGIN,))
def _ended(frame: Any, group: Any) -> None:
    if thread.recomputes:
        thread.recomputes.pop()
    if recorder.level >= TAGS:
        events.block_recomputed.tell(torch_compat.recomputed(frame(), group))
    stamps.module(thread.end(kinds.RECOMPUTE_BEGIN, 0, 0))


def _reentrant(function: Any) -> Any:
    @functools.wraps(function)
    def backward(ctx: Any, *args: Any) -> Any:
        _begins(reentrant=True)
        depth = len(thread.recomputes)
        try:
            return function(ctx, *args)
        finally:
            _reentrant_ended(depth)

    return backward


@guarded("the hook of checkpoints", opens=(kinds.RECOMPUTE_BEGIN,))
def _reentrant_ended(depth: int) -> None:
    # The backward of the recomputed part has ended the recompute. If there was none, the recompute ends here.
    if thread.recomputes and len(thread.recomputes) >= depth and thread.recomputes[-1]:
        thread.recomputes.pop()
        stamps.module(thread.end(kinds.RECOMPUTE_BEGIN, 0, 1))
