"""Records the calls that set up a run as phases, for scripts that name no phases. If a script builds a model directly
on the device, no such call is around that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import stages
from dpsight.patch import Patches, method
from dpsight.recorder import events, recorder, thread
from dpsight.torch_compat import INIT_STATE

# Methods that move or cast a module. The methods all call _apply, but _apply ends too early: a recurrent net packs its
# weights again after it.
_MOVES = ("to", "cuda", "to_empty", "half", "bfloat16", "float", "double", "type")


def install(patches: Patches) -> None:
    """Wraps torch's modules and optimizers."""
    torch = recorder.torch
    for attribute in _MOVES:
        stages.wrap(torch.nn.Module, attribute, stages.MODEL, patches)
    # Some of torch's optimizers take memory in their own constructors, after the constructor of their base class.
    base = torch.optim.Optimizer
    for cls in (base, *base.__subclasses__()):
        stages.wrap(cls, "__init__", stages.OPTIMIZER, patches)
    events.journal_opened.subscribe(stages.mark_late)


def install_data(module: Any, patches: Patches) -> None:
    """Wraps torch.utils.data.dataloader."""
    stages.wrap(module.DataLoader, "__init__", stages.DATA, patches)


def install_fsdp1(module: Any, patches: Patches) -> None:
    """Wraps torch.distributed.fsdp.fully_sharded_data_parallel."""
    stages.wrap(module.FullyShardedDataParallel, "__init__", stages.WRAP, patches)


def install_fsdp2(module: Any, patches: Patches) -> None:
    """Wraps the module of FSDP2, before others import its function by name."""
    patches.set(module, "fully_shard", stages.stage(module.fully_shard, stages.WRAP))


def install_state_dict(module: Any, patches: Patches) -> None:
    """Wraps torch.distributed.checkpoint.state_dict. To load the state of an optimizer that has none, this module of
    torch makes the optimizer step with zero gradients, which is no update of the training."""
    function = getattr(module, INIT_STATE, None)
    if function is not None:
        patches.set(module, INIT_STATE, stages.stage(_initializing(function), stages.OPTIMIZER))


def install_named_optimizer(module: Any, patches: Patches) -> None:
    """Wraps torch.distributed.optim.named_optimizer, whose optimizers step with zero gradients to make their state."""
    for cls in [c for c in vars(module).values() if isinstance(c, type)]:
        function = method(cls, "init_state")
        if function is not None:
            patches.set(cls, "init_state", stages.stage(_initializing(function), stages.OPTIMIZER))


def _initializing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def initialize(*args: Any, **kwargs: Any) -> Any:
        thread.begin_initializing()
        try:
            return function(*args, **kwargs)
        finally:
            thread.end_initializing()

    return initialize


def install_opacus_ddp(module: Any, patches: Patches) -> None:
    """Wraps opacus.distributed."""
    stages.wrap(module.DifferentiallyPrivateDistributedDataParallel, "__init__", stages.WRAP, patches)


def install_transformers(module: Any, patches: Patches) -> None:
    """Wraps transformers.modeling_utils: a pretrained model may be loaded right onto the device."""
    own = vars(module.PreTrainedModel).get("from_pretrained")
    if isinstance(own, classmethod):
        patches.set(module.PreTrainedModel, "from_pretrained", classmethod(stages.stage(own.__func__, stages.MODEL)))
