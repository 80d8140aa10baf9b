"""Calls NVML through ctypes, to read how much of a device's memory is in use, and by which processes. NVML is a library
of the driver, and creates no CUDA context."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, NamedTuple

_OK, _TOO_SMALL = 0, 7
_UNKNOWN = (1 << 64) - 1  # stands for the bytes of a process that the driver does not know
_SPARE = 8  # room for processes that started after the driver counted them


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Memory2(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


_VERSION_2 = ctypes.sizeof(_Memory2) | 2 << 24


class Reading(NamedTuple):
    """A device's memory at one moment, in bytes."""

    used: int
    reserved: int | None  # by the driver itself; None if an older call counts this memory as used
    free: int
    processes: list[tuple[int, int | None]]  # pid and bytes, as the driver counts them


class Device:
    """A GPU, as NVML knows it."""

    def __init__(self, library: Any, handle: Any, uuid: str, index: int) -> None:
        self._library, self._handle = library, handle
        self.uuid, self.index = uuid, index

    def read(self) -> Reading | None:
        """Reads the GPU's memory. Returns None if the driver does not answer."""
        memory = _Memory2(version=_VERSION_2)
        if self._library.nvmlDeviceGetMemoryInfo_v2(self._handle, ctypes.byref(memory)) == _OK:
            return Reading(memory.used, memory.reserved, memory.free, self._processes())
        older = _Memory()
        if self._library.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(older)) == _OK:
            return Reading(older.used, None, older.free, self._processes())
        return None

    def _processes(self) -> list[tuple[int, int | None]]:
        ask = self._library.nvmlDeviceGetComputeRunningProcesses_v3
        count = ctypes.c_uint(0)
        status = ask(self._handle, ctypes.byref(count), None)
        if status not in (_OK, _TOO_SMALL) or not count.value:
            return []
        count = ctypes.c_uint(count.value + _SPARE)
        found = (_Process * count.value)()
        if ask(self._handle, ctypes.byref(count), found) != _OK:
            return []
        return [(p.pid, None if p.used == _UNKNOWN else p.used) for p in found[: count.value]]


class Nvml:
    """The loaded library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")  # raises OSError without a driver
        status = self._library.nvmlInit_v2()
        if status != _OK:
            raise OSError(f"NVML failed to initialise: error {status}")

    def devices(self, uuids: Iterable[str]) -> list[Device]:
        """The devices with these UUIDs, in the form that torch uses."""
        out = []
        for uuid in uuids:
            handle, index = ctypes.c_void_p(), ctypes.c_uint()
            name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            if self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)) != _OK:
                continue
            if self._library.nvmlDeviceGetIndex(handle, ctypes.byref(index)) == _OK:
                out.append(Device(self._library, handle, name, index.value))
        return out

    def close(self) -> None:
        """Shuts NVML down."""
        self._library.nvmlShutdown()
