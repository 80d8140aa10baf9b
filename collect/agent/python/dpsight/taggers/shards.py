"""Tags what FSDP2 gathers and scatters: whole parameters under their shards' names, the flat tensors that are
communicated, and the resulting shards of gradients."""

from __future__ import annotations

from typing import Any

from dpsight import kinds, torch_compat
from dpsight.parameters import name_of
from dpsight.recorder import events, recorder
from dpsight.registry import registry
from dpsight.taggers.gradient_hooks import gradient_hooks
from dpsight.tags import Record, tags
from dpsight.tensors import quiet


def install() -> None:
    """Subscribes to groups of parameters."""
    events.group_gathered.subscribe(_gathered)
    events.group_scattered.subscribe(_scattered)


@quiet
def _gathered(group: Any) -> None:
    """Tags the parameters that a group has gathered, and the flat tensor in which they arrived. Gradients of gathered
    parameters are watched as for all parameters."""
    out: list[Record] = []
    for whole, shard, name in torch_compat.gathered(group):
        named = name_of(shard, name)
        registry.rename_parameter(whole, named)
        gradient_hooks.watch(whole, owned=False)
        out += tags.of(kinds.PARAMETER, whole, named)
    flat = torch_compat.gathered_flat(group)
    if flat is not None:
        out += tags.of(kinds.PARAMETER, flat, _flat(group, "gathered"))
    tags.emit(out)


@quiet
def _scattered(group: Any) -> None:
    """Tags the flat tensor into which a group's gradients were copied, and the resulting shards."""
    out: list[Record] = []
    sent = torch_compat.scattered_flat(group)
    if sent is not None:
        out += tags.of(kinds.GRADIENT, sent, _flat(group, "scattered"))
    for shard in torch_compat.shards(group):
        if shard.grad is not None:
            out += tags.of(kinds.GRADIENT, shard.grad, name_of(shard, "sharded"))
    tags.emit(out)


def _flat(group: Any, what: str) -> int:
    path = torch_compat.group_path(group)
    return recorder.tag_name(f"{path}.{what}" if path else what)
