"""Set-up stages of scripts that name none: marks around the calls that put a model on the device, wrap it, make its
optimizer and make both private. A model that is built on the device itself has no such call around it.

Most of this happens before CUDA is there, in launchers too, which shall write no journal: a stage is marked once one is
open, in the middle if need be. Which stages count, ingest decides: those before the first forward pass that trains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import backward, kinds, marks, timing
from dpsight.patch import Patches, method
from dpsight.state import local, state
from dpsight.steps import steps

MODEL = "setup.model"
WRAP = "setup.wrap"
OPTIMIZER = "setup.optimizer"
PRIVACY = "setup.privacy"
DATA = "setup.data"

# What moves or casts a module. Not _apply, through which they all go: a recurrent net packs its weights anew after it.
_MOVES = ("to", "cuda", "to_empty", "half", "bfloat16", "float", "double", "type")


def install(patches: Patches) -> None:
    """Wraps torch's modules and optimizers."""
    torch = state.torch
    for attribute in _MOVES:
        wrap(torch.nn.Module, attribute, MODEL, patches)
    # Some of torch's optimizers take memory in their own constructors, after the one they inherit.
    base = torch.optim.Optimizer
    for cls in (base, *base.__subclasses__()):
        wrap(cls, "__init__", OPTIMIZER, patches)
    marks.on_open(_opened)


def install_data(module: Any, patches: Patches) -> None:
    """Wraps torch.utils.data.dataloader."""
    wrap(module.DataLoader, "__init__", DATA, patches)


def install_fsdp1(module: Any, patches: Patches) -> None:
    """Wraps torch.distributed.fsdp.fully_sharded_data_parallel."""
    wrap(module.FullyShardedDataParallel, "__init__", WRAP, patches)


def install_fsdp2(module: Any, patches: Patches) -> None:
    """Wraps torch.distributed.fsdp._fully_shard._fully_shard, before others import its function by name."""
    patches.set(module, "fully_shard", stage(module.fully_shard, WRAP))


def install_opacus_ddp(module: Any, patches: Patches) -> None:
    """Wraps opacus.distributed."""
    wrap(module.DifferentiallyPrivateDistributedDataParallel, "__init__", WRAP, patches)


def install_transformers(module: Any, patches: Patches) -> None:
    """Wraps transformers.modeling_utils: a pretrained model may be loaded right onto the device."""
    own = vars(module.PreTrainedModel).get("from_pretrained")
    if isinstance(own, classmethod):
        patches.set(module.PreTrainedModel, "from_pretrained", classmethod(stage(own.__func__, MODEL)))


def wrap(cls: type, attribute: str, phase: str, patches: Patches) -> None:
    """Makes a method a stage, if the class has it."""
    function = method(cls, attribute)
    if function is not None:
        patches.set(cls, attribute, stage(function, phase))


def stage(function: Callable[..., Any], phase: str) -> Callable[..., Any]:
    """The function between two marks, where its call sets something up: not inside another stage or a phase of the
    script, nor anywhere in training."""
    compiling = state.torch.compiler.is_dynamo_compiling

    @functools.wraps(function)
    def staged(*args: Any, **kwargs: Any) -> Any:
        if compiling() or steps.number or local.stage or not _sets_up():
            return function(*args, **kwargs)
        try:
            _begin(phase)
            return function(*args, **kwargs)
        finally:
            _end()

    return staged


def _sets_up() -> bool:
    inside = local.calls or local.optimizer or local.dp_step or local.phases
    return not (state.dead or inside or backward.running())


def _begin(phase: str) -> None:
    local.stage = phase
    if marks.journal is not None:
        _mark()


def _mark() -> None:
    local.stage_number = marks.name(local.stage)
    timing.stamp(marks.mark(kinds.PHASE_BEGIN, kinds.SETUP, local.stage_number))


def _opened() -> None:
    """The first mark of all was made inside a stage."""
    if local.stage and not local.stage_number:
        _mark()


def _end() -> None:
    number = local.stage_number
    local.stage, local.stage_number = "", 0
    if number and not state.dead:
        timing.stamp(marks.mark(kinds.PHASE_END, kinds.SETUP, number))
