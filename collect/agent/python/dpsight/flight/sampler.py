"""A thread takes samples of the device's memory by process, and of this process's own memory. Only the latest samples
are kept, in memory."""

from __future__ import annotations

import _thread
import threading
import time
from collections import deque
from typing import Any

from dpsight.flight.nvml import Device, Nvml
from dpsight.recorder import recorder
from dpsight.recorder.hostmemory import Resident, pinned_bytes

INTERVAL = 0.5  # seconds between two samples
_KEPT = 14_400  # samples that are kept: an hour for a process with one device


class Sampler:
    """The sampling thread with its samples."""

    def __init__(self) -> None:
        self._samples: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self.nvml = False
        self.reason = "the process has not initialised CUDA"  # why there is nothing from NVML
        self._devices: list[Device] = []
        self._library: Nvml | None = None
        self._stop = threading.Event()
        self._done = threading.Event()
        self._asked = False  # whether NVML has been looked for
        self._resident = Resident()

    def begin(self) -> None:
        """Starts the thread without the threading module, since the script may count that module's threads."""
        _thread.start_new_thread(self._watch, ())

    def end(self) -> None:
        """Stops the thread and waits for it."""
        self._stop.set()
        self._done.wait(10)

    def _watch(self) -> None:
        try:
            while not self._stop.wait(INTERVAL):
                self.take()
        except Exception as error:
            self.nvml, self.reason = False, f"sampling failed: {error}"
            recorder.spared("sampling the process and its device", error)
        finally:
            if self._library is not None:
                self._library.close()
            self._resident.close()
            self._done.set()

    def taken(self) -> list[dict[str, Any]]:
        """The samples so far, the latest last. The thread may be adding one at this moment."""
        while True:
            try:
                return list(self._samples)
            except RuntimeError:  # the thread added a sample meanwhile
                continue

    def take(self) -> None:
        """Takes one sample of each device and of the process."""
        now = time.time_ns()
        rss = self._resident.bytes()
        if rss is not None:
            self._samples.append(
                {"time_ns": now, "rss": rss, "cpu_ns": time.process_time_ns(), "pinned": pinned_bytes(recorder.torch)}
            )
        if recorder.cuda and not self._asked:
            self._asked = True
            self._open()
        for device in self._devices:
            reading = device.read()
            if reading is not None:
                self.nvml, self.reason = True, ""
                self._samples.append(
                    {
                        "time_ns": now,
                        "device": device.index,
                        "used": reading.used,
                        "reserved": reading.reserved,
                        "free": reading.free,
                        "processes": reading.processes,
                    }
                )

    def _open(self) -> None:
        """Finds the devices of this process. No driver knows the memory of a phantom GPU."""
        if recorder.settings.source != "measured":
            self.reason = "a phantom GPU has no driver"
            return
        try:
            self._library = Nvml()
            cuda = recorder.torch.cuda
            count = cuda.device_count()
            self._devices = self._library.devices(str(cuda.get_device_properties(i).uuid) for i in range(count))
            self.reason = "NVML knows none of this process's devices"
            if self._devices:
                self.reason = "NVML does not report the device's used memory"
        except (OSError, AttributeError, RuntimeError) as error:
            self.reason = f"NVML is not available: {error}"
