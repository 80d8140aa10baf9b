"""Follows a script that resets torch's counters or records memory history itself. The agent first drains and marks the
event, then calls torch's function, then makes sure that its own recording continues."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds
from dpsight.interruptions import uninterrupted
from dpsight.patch import Patches
from dpsight.recorder import drains, freeze_threads, guarded, recorder
from dpsight.torch_compat import RECORD_HISTORY, SNAPSHOT

_RESETS = (
    "reset_peak_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
)


class Resets:
    """Whether a reset of counters is running, since torch's functions for resets call one another."""

    __slots__ = ("inside",)

    def __init__(self) -> None:
        self.inside = False


_resets = Resets()


def install(patches: Patches) -> None:
    """Wraps the public functions where they are defined and where they are exported again."""
    cuda = recorder.torch.cuda
    memory = cuda.memory
    for attribute in _RESETS:
        function = getattr(memory, attribute, None)
        if function is not None:
            _everywhere(patches, attribute, _resetting(function), (memory, cuda))
    accelerator = getattr(getattr(recorder.torch, "accelerator", None), "memory", None)
    for attribute in ("reset_peak_memory_stats", "reset_accumulated_memory_stats"):
        function = getattr(accelerator, attribute, None)
        if function is not None:
            _everywhere(patches, attribute, _resetting(function), (accelerator, recorder.torch.accelerator))
    patches.set(memory, RECORD_HISTORY, _recording(getattr(memory, RECORD_HISTORY)))
    patches.set(memory, SNAPSHOT, _snapshot(getattr(memory, SNAPSHOT)))


def _everywhere(patches: Patches, attribute: str, wrapped: Callable[..., Any], owners: tuple[Any, ...]) -> None:
    for owner in owners:
        if attribute in vars(owner):
            patches.set(owner, attribute, wrapped)


def _resetting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def reset(*args: Any, **kwargs: Any) -> Any:
        if _resets.inside or not recorder.cuda or not recorder.level:
            return function(*args, **kwargs)
        with uninterrupted, freeze_threads():
            _resets.inside = True
            try:
                drains.drain("script")
                recorder.mark(kinds.HISTORY_RESET, 0, recorder.name(function.__name__))
                return function(*args, **kwargs)
            finally:
                # The counters begin again, and the next drain is compared with the counters of this drain.
                drains.drain("script")
                _resets.inside = False

    return reset


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def record(enabled: Any = "all", *args: Any, **kwargs: Any) -> Any:
        if not recorder.cuda and enabled:
            # torch's function would initialise CUDA. Doing that here starts the agent's recording first.
            recorder.torch.cuda.init()
        if not drains.recording or not recorder.level:
            result = function(enabled, *args, **kwargs)
            if recorder.cuda and recorder.level:  # this moment is between two windows
                _notes(enabled, args, kwargs)
            return result
        with uninterrupted, freeze_threads():
            drains.drain("script")
            recorder.mark(kinds.HISTORY_RESET, 0, recorder.name(function.__name__))
            try:
                result = function(enabled, *args, **kwargs)
            except BaseException:  # an error of the script, such as a keyword that the installed torch lacks
                _goes_on()
                raise
            _shares(enabled, args, kwargs)
        return result

    return record


@guarded("going on after the script's recording")
def _goes_on() -> None:
    drains.resume_after_script()


@guarded("sharing the recording")
def _notes(enabled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    drains.script_records(_options(enabled, args, kwargs) if enabled else None, keep=bool(enabled))


@guarded("sharing the recording")
def _shares(enabled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records at least what the agent needs, with the script's options if the script records too."""
    drains.script_records(_options(enabled, args, kwargs) if enabled else None)
    drains.resume_after_script()


def _options(enabled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options with which the script wants to record. For the old boolean form and for positional arguments these
    are torch's defaults."""
    wanted = {
        k: v
        for k, v in kwargs.items()
        if k in ("context", "stacks", "compile_context", "global_record_annotations", "max_entries")
    }
    wanted.setdefault("context", args[0] if args and isinstance(args[0], str) else "all" if enabled == "all" else None)
    # Without a request for C++ stacks only Python stacks are recorded: to write C++ stacks out takes minutes.
    wanted.setdefault("stacks", "python")
    return wanted


def _snapshot(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def snapshot(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        _add_drained(result)
        return result

    return snapshot


@guarded("keeping events for the script")
def _add_drained(result: dict[str, Any]) -> None:
    """Adds the events drained since the script began to record to the script's own snapshot."""
    for i, kept in enumerate(drains.user_traces):
        if i < len(result["device_traces"]):
            result["device_traces"][i] = kept + result["device_traces"][i]
