"""Reads torch's own counters of device memory, by device. The events of a drain must agree with them."""

from __future__ import annotations

from typing import Any

from dpsight.recorder.core import recorder
from dpsight.torch_compat import private

KEYS = [
    (f"{group}.all.{part}", group, part)
    for group, parts in (
        ("allocated_bytes", ("current", "peak", "allocated", "freed")),
        ("reserved_bytes", ("current", "peak")),
        ("active_bytes", ("current", "peak")),
        ("requested_bytes", ("current", "peak", "allocated", "freed")),
        ("allocation", ("current", "allocated", "freed")),
        ("active", ("current", "allocated", "freed")),
        ("segment", ("current",)),
    )
    for part in parts
]
FLAT_KEYS = ("num_alloc_retries", "num_ooms")
# Counters that each event increases, except a snapshot.
_ACTS = (
    ("allocation", "allocated"),
    ("allocation", "freed"),
    ("active", "freed"),
    ("segment", "allocated"),
    ("segment", "freed"),
)
Acts = dict[int, tuple[int, ...]]
"""By device: how often memory was allocated and freed."""


class Devices:
    """The devices that this process uses."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self._told: set[int] = set()

    def news(self) -> list[int]:
        """Devices that were not returned before."""
        if len(self._told) == len(self.seen):
            return []
        new = sorted(self.seen - self._told)
        self._told.update(self.seen)
        return new

    def counters(self, events: list[int], all_devices: bool) -> list[dict[str, Any]]:
        """The counters of every used device, or of all. events: the number of events by device."""
        out = []
        for device in range(recorder.torch.cuda.device_count()):
            n = events[device] if device < len(events) else 0
            if not (all_devices or n or device in self.seen or device == private.current_device()):
                continue
            nested = private.memory_stats(device)
            if nested["allocation"]["all"]["allocated"]:  # events alone do not show use: snapshots are events too
                self.seen.add(device)
            flat = {key: nested[group]["all"][part] for key, group, part in KEYS}
            flat.update({key: nested[key] for key in FLAT_KEYS})
            out.append({"device": device, "events": n, "stats": flat})
        return out

    def acts(self) -> Acts:
        """By device in use: how often memory was allocated and freed so far."""
        return {device: _acts(device) for device in {*self.seen, private.current_device()}}


def everywhere() -> Acts:
    """By device: how often memory was allocated and freed so far. The current device does not matter."""
    return {device: _acts(device) for device in range(recorder.torch.cuda.device_count())}


def _acts(device: int) -> tuple[int, ...]:
    nested = private.memory_stats(device)
    return tuple(nested[group]["all"][part] for group, part in _ACTS)


def total_allocated() -> int:
    """The bytes allocated on all devices since the process began, including those freed since."""
    return _total("allocated")


def total_freed() -> int:
    """The bytes freed on all devices since the process began."""
    return _total("freed")


def _total(part: str) -> int:
    on_all = range(recorder.torch.cuda.device_count())
    return sum(private.memory_stats(device)["allocated_bytes"]["all"][part] for device in on_all)


def none_since(before: Acts, after: Acts) -> bool:
    """Whether no memory was allocated or freed between two readings."""
    never = (0,) * len(_ACTS)
    return all(before.get(device, never) == acts for device, acts in after.items())


devices = recorder.part(Devices)
