"""Installs the agent into a process that has just imported torch: all of it, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from dpsight import (
    allocator,
    api,
    backward,
    checkpointing,
    compiled,
    distributed,
    dynamo,
    endings,
    expanded_weights,
    forward,
    given,
    gradients,
    held,
    history,
    interruptions,
    kinds,
    marks,
    modules,
    opacus_hooks,
    optimizers,
    prediction,
    privacy,
    saved,
    setups,
    steps,
    tags,
    tensor_hooks,
    timing,
    torch_compat,
    windows,
)
from dpsight import state as shared
from dpsight.patch import Patches
from dpsight.state import failed, state

Callbacks = dict[str, Callable[[Any], None]]


def install(torch: Any, callbacks: Callbacks) -> None:
    """Hooks into torch. callbacks: what to run when another module has been imported."""
    state.torch = torch
    _check(torch)
    patches = Patches()
    try:
        _install(torch, callbacks, patches)
    except Exception:
        state.dead = True
        patches.undo()
        raise
    api.installed()


def _check(torch: Any) -> None:
    """Refuses a torch that cannot be recorded."""
    if torch.version.cuda is None:
        if os.environ.get("DPSIGHT_ALLOW_CPU") != "1":
            endings.refuse(f"torch {torch.__version__} cannot be recorded: a CUDA build of torch is needed")
    elif not torch_compat.records_metadata(torch):
        endings.refuse(f"torch {torch.__version__} cannot be recorded: 2.10 or later is needed")


def _install(torch: Any, callbacks: Callbacks, patches: Patches) -> None:
    torch_compat.private.bind(torch)
    given.install()
    forward.install(patches)
    backward.install(patches)
    optimizers.install(patches)
    compiled.install(patches)
    setups.install(patches)
    endings.install(patches)
    if not state.bare:
        tensor_hooks.install(patches)
    if torch.version.cuda is not None:
        allocator.install()
        history.install(patches)
    marks.on_open(_opened)
    steps.steps.on_end(_between_steps)

    def when(module: str, callback: Callable[[Any, Patches], None]) -> None:
        """Calls back once module has been imported; now, if it has been."""
        loaded = sys.modules.get(module)
        if loaded is not None:
            callback(loaded, patches)
        else:
            callbacks[module] = lambda m: _late(callback, m)

    when("torch.utils.checkpoint", checkpointing.install)
    when(distributed.DDP, distributed.install_ddp)
    when(torch_compat.FSDP2_GROUPS, distributed.install_fsdp)
    when("torch.utils.data.dataloader", setups.install_data)
    when("torch.distributed.fsdp.fully_sharded_data_parallel", setups.install_fsdp1)
    when(torch_compat.FSDP2, setups.install_fsdp2)
    when("transformers.modeling_utils", setups.install_transformers)
    when("opacus.distributed", setups.install_opacus_ddp)
    when("opacus.privacy_engine", privacy.install)
    for module in opacus_hooks.MODULES:
        when(module, opacus_hooks.install)
    when(torch_compat.EXPANDED_WEIGHTS, expanded_weights.install)
    dynamo.hide()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_parent=_forked, after_in_child=_after_fork)


def _late(callback: Callable[[Any, Patches], None], module: Any) -> None:
    patches = Patches()
    try:
        callback(module, patches)
    except Exception as error:
        patches.undo()
        failed(f"hooking {module.__name__}", error, fatal=False)


def _opened() -> None:
    steps.steps.mode()


def _between_steps() -> None:
    if state.bare:  # nothing is tagged, remembered or hooked
        allocator.between_steps(steps.steps.number, windows.windows)
        return
    saved.step_ended()
    given.step_ended()
    recorded = state.recording
    if recorded:
        ranks = sys.modules.get("torch.distributed")
        if ranks is not None and ranks.is_available() and ranks.is_initialized():
            tags.forget()  # sharding resizes storages: what comes back to the same address is another block
    if allocator.between_steps(steps.steps.number, windows.windows):
        tags.forget()
        steps.steps.mode()  # tags are bound in what is recorded only
    if not (recorded or state.recording):
        tags.owned.clear()  # of what failed
        return  # beyond the windows nothing else is tagged, and every call would be in the times of bare steps
    try:
        gradients.step_ended()
        modules.tag_roots()
        held.step_ended(steps.steps.number)
    except Exception as error:
        failed("tagging the model", error, fatal=False)


def _forked() -> None:
    if marks.journal is not None and not state.dead:
        marks.mark(kinds.FORKED)


def _after_fork() -> None:
    parts = (
        shared,
        interruptions,
        marks,
        windows,
        steps,
        timing,
        tags,
        modules,
        held,
        saved,
        given,
        backward,
        optimizers,
        allocator,
        prediction,
        endings,
    )
    for part in parts:
        part.after_fork()
