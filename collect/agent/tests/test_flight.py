"""Tests parts of the flight recorder that need no torch: its options, and what it reads from a fake NVML."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from dpsight.flight.nvml import Device  # noqa: E402
from dpsight.flight.settings import Wishes, from_environment  # noqa: E402

UNKNOWN = (1 << 64) - 1


class Library:
    """A fake NVML with two processes on the device."""

    def __init__(self, version_2: bool = True, processes: list[tuple[int, int]] | None = None) -> None:
        self.version_2 = version_2
        self.processes = [(101, 3 << 30), (202, UNKNOWN)] if processes is None else processes

    def nvmlDeviceGetMemoryInfo_v2(self, _handle: Any, memory: Any) -> int:
        if not self.version_2 or memory._obj.version != 40 | 2 << 24:  # the structure's size and version
            return 25  # NVML_ERROR_ARGUMENT_VERSION_MISMATCH
        memory._obj.used, memory._obj.reserved, memory._obj.free = 5 << 30, 1 << 30, 10 << 30
        return 0

    def nvmlDeviceGetMemoryInfo(self, _handle: Any, memory: Any) -> int:
        memory._obj.used, memory._obj.free = 6 << 30, 10 << 30
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, _handle: Any, count: Any, found: Any) -> int:
        room, count._obj.value = count._obj.value, len(self.processes)
        if found is None or room < len(self.processes):
            return 7 if self.processes else 0  # NVML_ERROR_INSUFFICIENT_SIZE
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


class TestWishes(unittest.TestCase):
    def test_what_means_nothing_is_refused(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            for wrong, said in (
                ({"store": file.name}, "is not a folder"),
                ({"events": 10}, "events must be a whole number of at least 1,000, not 10"),
                ({"events": 1e6}, "events must be"),
                ({"journal_mib": 0}, "journal_mib must be a whole number of at least 4"),
                ({"dumps": 0}, "dumps must be"),
            ):
                wishes = {"store": "runs", "name": None, "events": 5000, "journal_mib": 8, "dumps": 1, "signals": True}
                with self.assertRaisesRegex(ValueError, said):
                    Wishes.checked(**{**wishes, **wrong})  # type: ignore[arg-type]

    def test_environment(self) -> None:
        wishes = from_environment({"DPSIGHT_ATTACH_STORE": "/s", "DPSIGHT_ATTACH_EVENTS": "2000"})
        self.assertEqual((str(wishes.store), wishes.events, wishes.dumps, wishes.signals), ("/s", 2000, 3, True))
        self.assertEqual(wishes.ring_bytes, 2000 * 800)
        self.assertFalse(from_environment({"DPSIGHT_ATTACH_SIGNALS": "0"}).signals)
        with self.assertRaisesRegex(ValueError, "DPSIGHT_ATTACH_DUMPS must be a whole number"):
            from_environment({"DPSIGHT_ATTACH_DUMPS": "many"})

    def test_settings(self) -> None:
        wishes = from_environment({})
        settings = wishes.settings("/spool", {"PHANTOM_PROFILE": "x", "DPSIGHT_MODE": "bare", "DPSIGHT_STEPS": "3"})
        self.assertEqual((settings.source, settings.bare, settings.steps), ("predicted", False, ""))
        self.assertEqual((settings.max_entries, settings.alone, settings.spool), (wishes.events, True, "/spool"))


if __name__ == "__main__":
    unittest.main()
