"""Marks where autocast empties its cache. Inside a context of autocast the cache keeps a low-precision copy of every
weight that needs a gradient. The cache cannot be inspected. The outermost context empties it at its end, so blocks
freed at that moment were in the cache."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.patch import Patches
from dpsight.recorder import MODULES, guarded, recorder


def install(patches: Patches) -> None:
    """Wraps the function by which contexts of autocast empty the cache."""
    torch = recorder.torch
    patches.set(torch, "clear_autocast_cache", _marked(torch.clear_autocast_cache))


def _marked(function: Callable[[], None]) -> Callable[[], None]:
    compiling = recorder.torch.compiler.is_dynamo_compiling

    @functools.wraps(function)
    def clear_autocast_cache(*args: Any) -> None:
        if compiling() or recorder.level < MODULES:
            return function(*args)
        _mark(1)
        try:
            return function(*args)
        finally:
            _mark(0)

    return clear_autocast_cache


@guarded("the hook of autocast")
def _mark(begins: int) -> None:
    recorder.mark(kinds.CASTS_DROPPED, 0, begins)
