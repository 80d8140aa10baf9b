"""Tags tensors that were allocated before recording began: those of models and optimizers, and all others that a name
of the script leads to. Allocations from before recording have no events, so blocks without a tag count as untraced."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

from dpsight.holders.look import tag
from dpsight.recorder import recorder
from dpsight.registry import registry
from dpsight.tensors import living


class Found(NamedTuple):
    """What tag_existing found in the process."""

    models: int
    optimizers: int
    tagged: int  # number of the mark with the tags; 0 if there was nothing to tag


def tag_existing() -> Found:
    """Registers the models and optimizers of this process, and tags what they and other objects hold on a device."""
    torch = recorder.torch
    found = gc.get_objects()  # checked by type(), since an object may pretend to have another class
    modules = [o for o in found if issubclass(type(o), torch.nn.Module)]
    optimizers = [o for o in found if issubclass(type(o), torch.optim.Optimizer)]
    del found
    inner = {id(child) for module in modules for child in _children(module)}
    roots = [m for m in modules if id(m) not in inner and _on_device(m)]
    for root in roots:
        registry.number(root, outermost=True)
    for optimizer in optimizers:
        registry.optimizer(optimizer)
    tagged = tag(True, living()) if recorder.cuda and recorder.tagging else 0
    return Found(len(roots), len(optimizers), tagged)


def _children(module: Any) -> list[Any]:
    try:
        return [child for child in module.modules() if child is not module]
    except Exception:  # a module that is not fully made, or that cannot be walked
        return []


def _on_device(module: Any) -> bool:
    try:
        return any(p.is_cuda for p in module.parameters())
    except Exception:
        return False
