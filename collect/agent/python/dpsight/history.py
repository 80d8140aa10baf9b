"""A script that resets torch's counters, or records memory for itself, is observed: drain first, say so, let it, and
see that our recording goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import allocator, kinds
from dpsight.interruptions import uninterrupted
from dpsight.marks import mark, name
from dpsight.patch import Patches
from dpsight.state import failed, state
from dpsight.torch_compat import RECORD_HISTORY, SNAPSHOT

_RESETS = (
    "reset_peak_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
)
_inside = False


def install(patches: Patches) -> None:
    """Wraps the public functions where they are defined and where they are exported again."""
    cuda = state.torch.cuda
    memory = cuda.memory
    for attribute in _RESETS:
        function = getattr(memory, attribute, None)
        if function is not None:
            _everywhere(patches, attribute, _resetting(function), (memory, cuda))
    accelerator = getattr(getattr(state.torch, "accelerator", None), "memory", None)
    for attribute in ("reset_peak_memory_stats", "reset_accumulated_memory_stats"):
        function = getattr(accelerator, attribute, None)
        if function is not None:
            _everywhere(patches, attribute, _resetting(function), (accelerator, state.torch.accelerator))
    patches.set(memory, RECORD_HISTORY, _recording(getattr(memory, RECORD_HISTORY)))
    patches.set(memory, SNAPSHOT, _snapshot(getattr(memory, SNAPSHOT)))


def _everywhere(patches: Patches, attribute: str, wrapped: Callable[..., Any], owners: tuple[Any, ...]) -> None:
    for owner in owners:
        if attribute in vars(owner):
            patches.set(owner, attribute, wrapped)


def _resetting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def reset(*args: Any, **kwargs: Any) -> Any:
        global _inside
        if _inside or not state.cuda or state.dead:
            return function(*args, **kwargs)
        with uninterrupted, allocator.still():
            _inside = True
            try:
                allocator.drain("script")
                mark(kinds.HISTORY_RESET, 0, name(function.__name__))
                return function(*args, **kwargs)
            finally:
                # The counters begin anew: the next drain is compared with these.
                allocator.drain("script")
                _inside = False

    return reset


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def record(enabled: Any = "all", *args: Any, **kwargs: Any) -> Any:
        if not state.cuda and enabled:
            # It would initialise CUDA: let it, so that our recording starts first.
            state.torch.cuda.init()
        if not state.recording or state.dead:
            result = function(enabled, *args, **kwargs)
            if state.cuda and not state.dead:  # between two windows
                allocator.user_options = _options(enabled, args, kwargs) if enabled else None
                if not enabled:
                    allocator.user_traces.clear()  # torch forgets too
            return result
        try:
            with uninterrupted, allocator.still():
                allocator.drain("script")
                mark(kinds.HISTORY_RESET, 0, name(function.__name__))
                result = function(enabled, *args, **kwargs)
                allocator.user_traces.clear()
                allocator.user_options = _options(enabled, args, kwargs) if enabled else None
                allocator.go_on()  # at least as much as we need, with the script's own options if it has any
        except Exception as error:
            failed("sharing the recording", error)
            raise
        return result

    return record


def _options(enabled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What the script wants recorded. Its old boolean form and positional arguments keep torch's defaults."""
    wanted = {
        k: v
        for k, v in kwargs.items()
        if k in ("context", "stacks", "compile_context", "global_record_annotations", "max_entries")
    }
    wanted.setdefault("context", args[0] if args and isinstance(args[0], str) else "all" if enabled == "all" else None)
    # C++ stacks take minutes to write out; the script did not ask for them if it said nothing.
    wanted.setdefault("stacks", "python")
    return wanted


def _snapshot(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def snapshot(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        for i, kept in enumerate(allocator.user_traces):
            if i < len(result["device_traces"]):
                result["device_traces"][i] = kept + result["device_traces"][i]
        return result

    return snapshot
