"""torch's own counters of device memory, by device: a drain's events must agree with them."""

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
# Counters that rise with every event except a snapshot's.
_ACTS = (
    ("allocation", "allocated"),
    ("allocation", "freed"),
    ("active", "freed"),
    ("segment", "allocated"),
    ("segment", "freed"),
)
Acts = dict[int, tuple[int, ...]]
"""How often the memory of each device was taken and given back."""


class Devices:
    """The devices that this process uses."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self._told: set[int] = set()

    def news(self) -> list[int]:
        """Those that were not told of before."""
        if len(self._told) == len(self.seen):
            return []
        new = sorted(self.seen - self._told)
        self._told.update(self.seen)
        return new

    def counters(self, events: list[int], all_devices: bool) -> list[dict[str, Any]]:
        """The counters of every used device, or of all. events: how many events each has."""
        out = []
        for device in range(recorder.torch.cuda.device_count()):
            n = events[device] if device < len(events) else 0
            if not (all_devices or n or device in self.seen or device == private.current_device()):
                continue
            nested = private.memory_stats(device)
            if nested["allocation"]["all"]["allocated"]:  # an event tells little: a snapshot is one, on every device
                self.seen.add(device)
            flat = {key: nested[group]["all"][part] for key, group, part in KEYS}
            flat.update({key: nested[key] for key in FLAT_KEYS})
            out.append({"device": device, "events": n, "stats": flat})
        return out

    def acts(self) -> Acts:
        """How often the memory of each device in use was taken and given back so far."""
        return {device: _acts(device) for device in {*self.seen, private.current_device()}}


def everywhere() -> Acts:
    """How often the memory of each device was taken and given back so far, whichever is the current one."""
    return {device: _acts(device) for device in range(recorder.torch.cuda.device_count())}


def _acts(device: int) -> tuple[int, ...]:
    nested = private.memory_stats(device)
    return tuple(nested[group]["all"][part] for group, part in _ACTS)


def total_allocated() -> int:
    """The bytes that were taken since the process began, on all devices: given back or not."""
    return _total("allocated")


def total_freed() -> int:
    """The bytes that were given back since the process began, on all devices."""
    return _total("freed")


def _total(part: str) -> int:
    on_all = range(recorder.torch.cuda.device_count())
    return sum(private.memory_stats(device)["allocated_bytes"]["all"][part] for device in on_all)


def none_since(before: Acts, after: Acts) -> bool:
    """Whether no memory was taken or given back in between."""
    never = (0,) * len(_ACTS)
    return all(before.get(device, never) == acts for device, acts in after.items())


devices = recorder.part(Devices)
