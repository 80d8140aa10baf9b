"""Collects what changes memory or speed in this process: versions, allocator settings, precision. Unknown facts are
null."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.recorder import events, recorder
from dpsight.torch_compat import private

# Only these environment variables are recorded, since an environment contains much that is private.
VARIABLES = (
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "CUDA_MODULE_LOADING",
    "OMP_NUM_THREADS",
    "PYTHONHASHSEED",
)


def install() -> None:
    """Arranges that the environment is recorded when CUDA starts and when the process ends, and devices when they are
    first used."""
    events.cuda_ready.subscribe(_write)
    events.process_ends.subscribe(_write)
    events.devices_seen.subscribe(_write_devices)


def _write() -> None:
    """Writes the present environment, which replaces an earlier one."""
    recorder.frame(kinds.FRAME_ENVIRONMENT, gather())


def _write_devices(ordinals: list[int]) -> None:
    """Writes which GPUs torch's device numbers stand for, since CUDA_VISIBLE_DEVICES can change the numbering."""
    recorder.frame(kinds.FRAME_DEVICES, {"devices": [{"device": i, "uuid": _uuid(i)} for i in ordinals]})


def _uuid(ordinal: int) -> str | None:
    """A GPU's UUID without NVML's prefix. Reading a device's properties creates no context on it."""
    return _ask(lambda: str(recorder.torch.cuda.get_device_properties(ordinal).uuid))


def gather() -> dict[str, Any]:
    """The environment. Reading torch's old and new names for a setting may warn or fail. The setting is then
    unknown."""
    torch = recorder.torch
    backends = torch.backends
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "python": sys.version.split()[0],
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "cudnn": _ask(lambda: _text(backends.cudnn.version())),
            "opacus": _opacus(),
            "allocator_backend": _ask(lambda: torch.cuda.memory.get_allocator_backend()),
            "allocator_settings": _ask(_allocator_settings),
            "tf32_matmul": _ask(lambda: bool(backends.cuda.matmul.allow_tf32)),
            "tf32_cudnn": _ask(lambda: bool(backends.cudnn.allow_tf32)),
            "matmul_precision": _ask(torch.get_float32_matmul_precision),
            "sdpa_backends": _sdpa(backends.cuda),
            "cudnn_benchmark": _ask(lambda: bool(backends.cudnn.benchmark)),
            "deterministic": _ask(torch.are_deterministic_algorithms_enabled),
            "seed": _seed(torch),
            "variables": {v: os.environ[v] for v in VARIABLES if v in os.environ},
        }


def _ask(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception:
        return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _opacus() -> str | None:
    opacus = sys.modules.get("opacus")
    return _text(getattr(opacus, "__version__", None))


def _allocator_settings() -> dict[str, Any] | None:
    if not recorder.cuda:
        return None
    # Without traces, since torch would copy the whole history.
    settings = private.memory_snapshot((0, 0, False)).get("allocator_settings")
    return {str(k): v for k, v in settings.items()} if settings else None


def _sdpa(cuda: Any) -> list[str]:
    names = {
        "flash": "flash_sdp_enabled",
        "efficient": "mem_efficient_sdp_enabled",
        "math": "math_sdp_enabled",
        "cudnn": "cudnn_sdp_enabled",
    }
    return [name for name, asked in names.items() if _ask(getattr(cuda, asked, lambda: False))]


def _seed(torch: Any) -> int | None:
    """The seed, if the script set one. torch's own default is a random 64-bit number."""
    seed = _ask(torch.initial_seed)
    return seed if seed is not None and seed < 1 << 63 else None
