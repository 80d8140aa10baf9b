"""Which graphs and gradients a thread may read. The engine has a thread for each device; for the host, the waiting
thread itself runs it. These threads write gradients and release graphs without a lock against readers. Reading
them at that moment crashes the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsight.recorder import in_backward, runs, thread
from dpsight.registry import registry
from dpsight.torch_compat import private

Safe = Callable[[Any], bool]
"""Of a device: whether no other thread can be writing gradients there, or letting go of graphs."""


def nowhere(_device: Any) -> bool:
    """No device is safe."""
    return False


def safe_devices() -> Safe | None:
    """On which devices this thread may read gradients and graphs; None = on all. A run elsewhere may begin at any
    moment while we look, so a thread that does not train looks at none."""
    if in_backward():
        if thread.trainer is not None or len(runs.trainers) > 1:
            return nowhere
        here = private.current_device()
        return lambda device: device.type == "cuda" and device.index == here
    if thread.trainer is not None:
        return None if len(runs.trainers) == 1 else nowhere
    return nowhere if len(runs.trainers) or registry.called_elsewhere() else None
