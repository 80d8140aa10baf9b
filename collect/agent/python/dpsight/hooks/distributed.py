"""Follows the memory that ranks need for communication: the flat buckets in which DDP's reducer averages gradients, and
the tensors that FSDP2 gathers and scatters.

Torch's C++ code owns DDP's buckets. No call returns their addresses without an allocation of its own, and a hook that
receives them would replace the script's hook. So marks around the two calls that make buckets show which blocks they
are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import kinds, stages, torch_compat
from dpsight.patch import Patches, method
from dpsight.recorder import TAGS, events, guarded, recorder

DDP = "torch.nn.parallel.distributed"


def install_ddp(module: Any, patches: Patches) -> None:
    """Watches how the reducer is created, and how it makes its buckets again in the second forward."""
    cls = module.DistributedDataParallel
    stages.wrap(cls, "__init__", stages.WRAP, patches)
    for owner, attribute in list(torch_compat.bucket_makers(module)):
        patches.set(owner, attribute, _making(getattr(owner, attribute)))


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    compiling = recorder.torch.compiler.is_dynamo_compiling

    def make(*args: Any, **kwargs: Any) -> Any:
        if compiling() or not recorder.level:
            return function(*args, **kwargs)
        events.buckets_due.tell(args[0])
        _mark("DDP bucket")
        try:
            anew = function(*args, **kwargs)
        finally:
            _mark("")
        if anew is True:
            events.buckets_made.tell(args[0])
        return anew

    # A method that C++ defines has neither a dictionary nor annotations to copy.
    return functools.wraps(function, assigned=("__name__", "__doc__"), updated=())(make)


@guarded("the hook of DDP's reducer")
def _mark(name: str) -> None:
    """Makes later allocations have this name, or no name if it is empty."""
    recorder.mark(kinds.REDUCER, 0, recorder.name(name) if name else 0)


def install_fsdp(module: Any, patches: Patches) -> None:
    """Watches how FSDP2 gathers groups of parameters, and scatters their gradients."""
    cls = module.FSDPParamGroup
    for attribute, event in (
        (torch_compat.GATHER, events.group_gathered),
        (torch_compat.SCATTER, events.group_scattered),
    ):
        function = method(cls, attribute)
        if function is not None:
            patches.set(cls, attribute, _telling(function, event))


def _telling(function: Callable[..., Any], event: events.Event) -> Callable[..., Any]:
    compiling = recorder.torch.compiler.is_dynamo_compiling

    @functools.wraps(function)
    def telling(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        if not compiling() and recorder.level >= TAGS:
            event.tell(self)
        return result

    return telling
