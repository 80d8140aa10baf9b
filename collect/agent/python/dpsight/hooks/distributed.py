"""What ranks keep for each other's sake: the flat buckets in which DDP's reducer averages gradients, and what FSDP2
gathers and scatters.

The buckets are C++'s: no call gives their addresses without an allocation of its own (a hook that is handed them would
take the place of a script's). Marks around the two calls that make them tell which blocks they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds, stages, torch_compat
from dpsight.parameters import name_of
from dpsight.patch import Patches, method
from dpsight.recorder import TAGS, events, guarded, recorder
from dpsight.registry import registry
from dpsight.tags import Record, tags
from dpsight.tensors import quiet

DDP = "torch.nn.parallel.distributed"


def install_ddp(module: Any, patches: Patches) -> None:
    """Watches the reducer being made, and making its buckets anew in the second forward."""
    cls = module.DistributedDataParallel
    stages.wrap(cls, "__init__", stages.WRAP, patches)
    for owner, attribute in list(torch_compat.bucket_makers(module)):
        patches.set(owner, attribute, _making(getattr(owner, attribute)))


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    compiling = recorder.torch.compiler.is_dynamo_compiling

    def make(*args: Any, **kwargs: Any) -> Any:
        if compiling() or not recorder.level:
            return function(*args, **kwargs)
        _mark("DDP bucket")
        try:
            return function(*args, **kwargs)
        finally:
            _mark("")

    # An instance method of C++ has neither a dictionary nor annotations.
    return functools.wraps(function, assigned=("__name__", "__doc__"), updated=())(make)


@guarded("the hook of DDP's reducer")
def _mark(name: str) -> None:
    """What is allocated from here on has this name, or none again."""
    recorder.mark(kinds.REDUCER, 0, recorder.name(name) if name else 0)


def install_fsdp(module: Any, patches: Patches) -> None:
    """Watches groups of parameters being gathered, and their gradients being scattered."""
    cls = module.FSDPParamGroup
    for attribute, look in ((torch_compat.GATHER, _gathered), (torch_compat.SCATTER, _scattered)):
        function = method(cls, attribute)
        if function is not None:
            patches.set(cls, attribute, _looking(function, look))


def _looking(function: Callable[..., Any], look: Callable[[Any], list[Record]]) -> Callable[..., Any]:
    compiling = recorder.torch.compiler.is_dynamo_compiling

    @functools.wraps(function)
    def looking(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        if not compiling() and recorder.level >= TAGS:
            _tag(look, self)
        return result

    return looking


@guarded("looking at what ranks share", fatal=False)
def _tag(look: Callable[[Any], list[Record]], group: Any) -> None:
    tags.emit(look(group))


@quiet
def _gathered(group: Any) -> list[Record]:
    """Records of the parameters that a group has gathered, under the names of their shards, and of the flat tensor that
    they came in. Their gradients are watched as any parameter's."""
    out: list[Record] = []
    for whole, shard, name in torch_compat.gathered(group):
        named = name_of(shard, name)
        registry.rename_parameter(whole, named)
        events.parameter_gathered.tell(whole)
        out += tags.of(kinds.PARAMETER, whole, named)
    flat = torch_compat.gathered_flat(group)
    if flat is not None:
        out += tags.of(kinds.PARAMETER, flat, _flat(group, "gathered"))
    return out


@quiet
def _scattered(group: Any) -> list[Record]:
    """Records of the flat tensor that a group's gradients were put into, and of the shards that came out."""
    out: list[Record] = []
    sent = torch_compat.scattered_flat(group)
    if sent is not None:
        out += tags.of(kinds.GRADIENT, sent, _flat(group, "scattered"))
    for shard in torch_compat.shards(group):
        if shard.grad is not None:
            out += tags.of(kinds.GRADIENT, shard.grad, name_of(shard, "sharded"))
    return out


def _flat(group: Any, what: str) -> int:
    path = torch_compat.group_path(group)
    return recorder.tag_name(f"{path}.{what}" if path else what)
