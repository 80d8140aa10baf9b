"""What the flight recorder reads of NVML, from a library that answers as the driver's does. No torch is needed."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from dpsight.flight.nvml import Device  # noqa: E402

UNKNOWN = (1 << 64) - 1


class Library:
    """A driver's library with two processes on the device."""

    def __init__(self, version_2: bool = True, processes: list[tuple[int, int]] | None = None) -> None:
        self.version_2 = version_2
        self.processes = [(101, 3 << 30), (202, UNKNOWN)] if processes is None else processes

    def nvmlDeviceGetMemoryInfo_v2(self, _handle: Any, memory: Any) -> int:
        if not self.version_2 or memory._obj.version != 40 | 2 << 24:  # the size of the structure, and its version
            return 25  # the structure's version is not known
        memory._obj.used, memory._obj.reserved, memory._obj.free = 5 << 30, 1 << 30, 10 << 30
        return 0

    def nvmlDeviceGetMemoryInfo(self, _handle: Any, memory: Any) -> int:
        memory._obj.used, memory._obj.free = 6 << 30, 10 << 30
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, _handle: Any, count: Any, found: Any) -> int:
        room, count._obj.value = count._obj.value, len(self.processes)
        if found is None or room < len(self.processes):
            return 7 if self.processes else 0  # too small
        for place, (pid, used) in zip(found, self.processes, strict=False):
            place.pid, place.used = pid, used
        return 0


class TestNvml(unittest.TestCase):
    def test_processes(self) -> None:
        reading = Device(Library(), None, "GPU-1", 0).read()
        assert reading is not None
        self.assertEqual((reading.used, reading.reserved, reading.free), (5 << 30, 1 << 30, 10 << 30))
        self.assertEqual(reading.processes, [(101, 3 << 30), (202, None)])

    def test_an_older_driver(self) -> None:
        reading = Device(Library(version_2=False, processes=[]), None, "GPU-1", 0).read()
        assert reading is not None
        self.assertEqual((reading.used, reading.reserved, reading.processes), (6 << 30, None, []))


if __name__ == "__main__":
    unittest.main()
