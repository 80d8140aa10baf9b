"""Tells which graphs and gradients a thread may read. Autograd's engine has a thread for each device. On the host, the
waiting thread runs nodes itself. The threads that run a graph write gradients and release graphs without a lock against
readers. A read during a write crashes the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsight.recorder import in_backward, runs, thread
from dpsight.registry import registry
from dpsight.torch_compat import private

Safe = Callable[[Any], bool]
"""A function of a device: whether no other thread can be writing gradients or releasing graphs there."""


def nowhere(_device: Any) -> bool:
    """Answers for any device that its gradients and graphs are not safe to read."""
    return False


def safe_devices() -> Safe | None:
    """Returns a function for the devices on which this thread may read gradients and graphs, or None for all devices.
    In a thread that does not train, another thread's backward may begin at any moment, so no device is safe."""
    if in_backward():
        if thread.trainer is not None or len(runs.trainers) > 1:
            return nowhere
        here = private.current_device()
        return lambda device: device.type == "cuda" and device.index == here
    if thread.trainer is not None:
        return None if len(runs.trainers) == 1 else nowhere
    return nowhere if len(runs.trainers) or registry.called_elsewhere() else None
