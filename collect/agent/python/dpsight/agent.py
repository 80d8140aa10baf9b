"""Installs the agent into a process that has just imported torch: either the whole agent or nothing. Only this module
decides which listeners receive which events, and in which order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from dpsight import environment, kinds, torch_compat
from dpsight.adapters import ADAPTERS
from dpsight.endings import ending, refuse
from dpsight.failed_requests import requests
from dpsight.garbage import garbage
from dpsight.holders.keepers import keepers
from dpsight.hooks import (
    autocast,
    backward,
    backward_modules,
    checkpointing,
    compiled,
    distributed,
    dynamo,
    expanded_weights,
    forward,
    optimizers,
    privacy,
    private_training,
    script_history,
    setups,
)
from dpsight.lines.script_lines import lines
from dpsight.nodes import nodes
from dpsight.patch import Patches, installed
from dpsight.prediction import prediction
from dpsight.recorder import drains, events, host_memory, recorder, stamps, steps, thread, timer
from dpsight.script_code import script_code
from dpsight.surveys import surveys
from dpsight.taggers import per_sample, shards
from dpsight.taggers.gradient_hooks import gradient_hooks
from dpsight.taggers.models import models
from dpsight.taggers.module_attrs import module_attrs
from dpsight.taggers.optimizer_state import optimizer_state
from dpsight.taggers.saved import saved
from dpsight.taggers.step_io import step_io
from dpsight.taggers.tensor_hooks import tensor_hooks
from dpsight.tags import tags

Callbacks = dict[str, Callable[[Any], None]]
Install = Callable[[Any, Patches], None]


def install(torch: Any, callbacks: Callbacks) -> None:
    """Hooks into torch. callbacks: functions to call when other modules have been imported."""
    recorder.installs_into(torch)
    if problem := why_not(torch):
        refuse(problem)
    patches = installed.new()
    try:
        torch_compat.private.bind(torch)
        _install_hooks(patches)
        if recorder.tagging:
            _install_taggers(patches)
        _install_reports(torch, patches)
        for module, install_into in _LATER.items():
            _when(module, install_into, callbacks, patches)
        dynamo.hide()
        if torch.version.cuda is not None:
            drains.install()  # last, since recording begins with it if CUDA has already started
        if hasattr(os, "register_at_fork") and recorder.first("forks"):
            os.register_at_fork(after_in_parent=_forked, after_in_child=recorder.after_fork)
    except Exception:
        recorder.silence()
        installed.undo()
        events.forget_listeners()
        raise


def uninstall() -> None:
    """Removes the agent from the process, which continues as if the agent had never been there."""
    gradient_hooks.unwatch()
    recorder.silence()
    installed.undo()
    events.forget_listeners()
    events.hook_failed.subscribe(thread.close_failed)  # before any hook is installed
    ending.uninstall()
    recorder.begin_anew(None)


def why_not(torch: Any) -> str:
    """Returns why a version of torch cannot be recorded, or "" if it can."""
    if torch.version.cuda is None:
        if os.environ.get("DPSIGHT_ALLOW_CPU") != "1":
            return f"torch {torch.__version__} is not a CUDA build: install a CUDA build of torch"
    elif not torch_compat.records_metadata(torch):
        return f"torch {torch.__version__} is too old: install torch 2.10 or later"
    return ""


def _install_hooks(patches: Patches) -> None:
    forward.install(patches)
    backward.install(patches)
    optimizers.install(patches)
    compiled.install(patches)
    setups.install(patches)
    autocast.install(patches)


def _install_taggers(patches: Patches) -> None:
    """Installs the taggers in the order in which they look at tensors. A bare run has none of them."""
    events.step_ended.subscribe(nodes.step_ended)
    saved.install()
    models.install()
    step_io.install()
    events.step_ended.subscribe(tags.step_ended)
    events.model_called.subscribe(tags.model_called)
    events.window_opened.subscribe(tags.forget_places)
    backward_modules.install()
    optimizer_state.install()
    gradient_hooks.install()
    module_attrs.install()
    tensor_hooks.install(patches)
    per_sample.install()
    shards.install()


def _install_reports(torch: Any, patches: Patches) -> None:
    ending.install(patches)
    requests.install(patches)
    environment.install()
    script_code.install()
    prediction.install(patches)
    privacy.watch_optimizers()
    events.journal_opened.subscribe(steps.choose_mode)
    events.drain_begins.subscribe(tags.flush)
    events.drain_begins.subscribe(stamps.flush)
    events.drain_begins.subscribe(host_memory.flush)
    events.drain_alone.subscribe(host_memory.flush)
    events.drain_alone.subscribe(tags.flush)
    recorder.on_request(drains.drain_on_request)
    if torch.version.cuda is not None:
        timer.install()
        lines.install()
        garbage.install_at_once()
        if recorder.tagging:
            surveys.install()
            keepers.install()
        script_history.install(patches)


# What to install after each of these modules has been imported.
_LATER: dict[str, Install] = {
    "torch.utils.checkpoint": checkpointing.install,
    distributed.DDP: distributed.install_ddp,
    torch_compat.FSDP2_GROUPS: distributed.install_fsdp,
    "torch.utils.data.dataloader": setups.install_data,
    "torch.distributed.fsdp.fully_sharded_data_parallel": setups.install_fsdp1,
    torch_compat.FSDP2: setups.install_fsdp2,
    torch_compat.STATE_DICT: setups.install_state_dict,
    torch_compat.NAMED_OPTIMIZER: setups.install_named_optimizer,
    "transformers.modeling_utils": setups.install_transformers,
    "opacus.distributed": setups.install_opacus_ddp,
    "opacus.privacy_engine": privacy.install,
    **{module: private_training.installing(adapter) for adapter in ADAPTERS for module in adapter.modules},
    torch_compat.EXPANDED_WEIGHTS: expanded_weights.install,
}


def _when(name: str, install_into: Install, callbacks: Callbacks, patches: Patches) -> None:
    """Calls an install function once the module with this name has been imported, or at once if the module already
    is."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        install_into(loaded, patches)
    else:
        callbacks[name] = lambda module: _late(install_into, module)


def _late(install_into: Install, module: Any) -> None:
    patches = installed.new()
    try:
        install_into(module, patches)
    except Exception as error:
        patches.undo()
        recorder.hook_failed(f"hooking {module.__name__}", error)


def _forked() -> None:
    if recorder.journal is not None and recorder.level:
        recorder.mark(kinds.FORKED)
