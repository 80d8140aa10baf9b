"""What ranks keep for each other's sake: the flat buckets in which DDP's reducer averages gradients, and what FSDP2
gathers and scatters.

The buckets are C++'s: no call gives their addresses without an allocation of its own (a hook that is handed them would
take the place of a script's). Marks around the two calls that make them tell which blocks they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpsight import gradients, kinds, modules, setups, tags
from dpsight.marks import mark, name, tag_name
from dpsight.patch import Patches, method
from dpsight.state import failed, state
from dpsight.tensors import quiet

DDP = "torch.nn.parallel.distributed"
FSDP = "torch.distributed.fsdp._fully_shard._fsdp_param_group"


def install_ddp(module: Any, patches: Patches) -> None:
    """Watches the reducer being made, and making its buckets anew in the second forward."""
    cls = module.DistributedDataParallel
    setups.wrap(cls, "__init__", setups.WRAP, patches)
    helper = method(cls, "_ddp_init_helper")
    if helper is not None:
        patches.set(cls, "_ddp_init_helper", _making(helper))
    reducer = getattr(module.dist, "Reducer", None)  # a build without torch.distributed has none
    rebuild = getattr(reducer, "_rebuild_buckets", None)
    if rebuild is not None:
        patches.set(reducer, "_rebuild_buckets", _making(rebuild))


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    compiling = state.torch.compiler.is_dynamo_compiling

    def make(*args: Any, **kwargs: Any) -> Any:
        if compiling() or state.dead:
            return function(*args, **kwargs)
        mark(kinds.REDUCER, 0, name("DDP bucket"))
        try:
            return function(*args, **kwargs)
        finally:
            mark(kinds.REDUCER)

    # An instance method of C++ has neither a dictionary nor annotations.
    return functools.wraps(function, assigned=("__name__", "__doc__"), updated=())(make)


def install_fsdp(module: Any, patches: Patches) -> None:
    """Watches groups of parameters being gathered, and their gradients being scattered."""
    cls = module.FSDPParamGroup
    for attribute, look in (("_to_unsharded", _gathered), ("post_backward", _scattered)):
        function = method(cls, attribute)
        if function is not None:
            patches.set(cls, attribute, _looking(function, look))


def _looking(function: Callable[..., Any], look: Callable[[Any], list[tags.Record]]) -> Callable[..., Any]:
    compiling = state.torch.compiler.is_dynamo_compiling

    @functools.wraps(function)
    def looking(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        if not compiling() and state.instrumented and state.cuda and not state.dead:
            try:
                tags.emit(look(self))
            except Exception as error:
                failed("looking at what ranks share", error, fatal=False)
        return result

    return looking


@quiet
def _gathered(group: Any) -> list[tags.Record]:
    """Records of the parameters that a group has gathered, under the names of their shards, and of the flat tensor that
    they came in. Their gradients are watched as any parameter's."""
    out: list[tags.Record] = []
    for shared in group.fsdp_params:
        whole = shared._unsharded_param
        named = gradients.name_of(shared.sharded_param, shared._param_fqn or "sharded")
        modules.names[id(whole)] = named
        gradients.watch(whole, owned=False)
        out += tags.of(kinds.PARAMETER, whole, named)
    flat = getattr(group._all_gather_result, "all_gather_output", None)
    if flat is not None:
        out += tags.of(kinds.PARAMETER, flat, _flat(group, "gathered"))
    return out


@quiet
def _scattered(group: Any) -> list[tags.Record]:
    """Records of the flat tensor that a group's gradients were put into, and of the shards that came out."""
    out: list[tags.Record] = []
    # The latest, which this group has sent; newer releases of torch keep a list.
    states = getattr(group.comm_ctx, "reduce_scatter_states", None) or [
        getattr(group.comm_ctx, "reduce_scatter_state", None)
    ]
    sent = getattr(states[-1], "reduce_scatter_input", None)
    if sent is not None:
        out += tags.of(kinds.GRADIENT, sent, _flat(group, "scattered"))
    for shared in group.fsdp_params:
        if shared.sharded_param.grad is not None:
            out += tags.of(
                kinds.GRADIENT, shared.sharded_param.grad, gradients.name_of(shared.sharded_param, "sharded")
            )
    return out


def _flat(group: Any, what: str) -> int:
    path = group._module_fqn
    return tag_name(f"{path}.{what}" if path else what)
