"""Refuses what these methods cannot clip, naming it: a wrong clipped sum would look like a right one."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from dpsight_experiments.options import UsageError


def check(method: str, model: nn.Module, clipping: str, max_grad_norm: float | Sequence[float], one_pass: bool) -> None:
    """Raises UsageError if the method does not support the model or the way of clipping."""
    if clipping not in (("flat", "per_layer") if one_pass else ("flat",)):
        raise UsageError(f"clipping {clipping} is not supported with method {method}")
    if (clipping == "per_layer") != isinstance(max_grad_norm, Sequence):
        raise UsageError(f"clipping {clipping} takes {'a list of norms' if clipping == 'per_layer' else 'one norm'}")
    owners: dict[nn.Parameter, str] = {}
    for path, module in model.named_modules():
        for name, p in module.named_parameters(prefix=path, recurse=False):
            if p in owners:
                raise UsageError(f"method {method} cannot serve a shared parameter: {owners[p]} is {name} too")
            owners[p] = name
        if isinstance(module, nn.Embedding) and any(p.requires_grad for p in module.parameters()):
            for option in ("max_norm", "scale_grad_by_freq", "sparse"):
                if getattr(module, option):
                    raise UsageError(f"method {method} cannot serve {path}: an embedding with {option}")


def called_twice(path: str) -> UsageError:
    """Returns the error for a layer that is called again before its gradient was clipped."""
    return UsageError(f"layer {path} is called again before its gradient was clipped")


def path_of(module: nn.Module, model: nn.Module) -> str:
    """Returns a module's dotted path in the model."""
    return next((path for path, m in model.named_modules() if m is module), type(module).__name__)
