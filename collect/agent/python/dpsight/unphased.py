"""Steps without phases. In a long run of short steps most bare ones are marked and stamped at their end only: marks and
CUDA events around forward, backward and zero_grad would take several per cent of a step of ten milliseconds that the
host launches, and what each phase takes is known by the others. Where every step is measured on purpose (by plan())
or recorded, and on a phantom GPU, which has no times, all steps have their phases. So have those of scripts with
Opacus, checkpoints, compiled functions, updates in backward or dpsight.step(): there the runs of backward tell what is
what.

Only the thread that trains passes over its marks, and not over those of a model that was called on its own before and
is in eval mode, without gradients; updates are marked in every step, by which offline steps are found. Where one
optimizer makes them all an update has one mark, at its end, which is the step's too: two more, and what leads to them,
were as dear as all calls of modules. If something inside is to be marked, its beginning is marked late. What a failing
request's memory is of is known less well in such a step: the script's tensors and the graph are found, but which module
saved what, and the module in backward, are not.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

from dpsight import backward, failures, forward, given, kinds, modules, optimizers
from dpsight.marks import mark
from dpsight.state import CALLED, local, state


def begin_late() -> int:
    """Marks the beginning of the pass in which a request has just failed, where nothing else has: the kind of that
    mark, 0 = there is none to mark. The pass is the one whose functions are under way; the loss is part of forward."""
    inside = backward.running()
    if not state.unphased or not (inside or state.unphased == get_ident()):
        return 0
    optimizers.settle()
    if local.optimizer or local.calls or local.backward:
        return 0
    if inside:
        mark(kinds.BACKWARD_BEGIN, kinds.ACCUMULATE, 1)
        return kinds.BACKWARD_BEGIN
    passed: Any = None
    for frame in failures.frames(failures.script()):
        if forward.is_call(frame.f_code):
            passed = failures.variables(frame).get("args") or passed
    root = passed[0] if passed else None
    if root is None and state.passed != CALLED:
        return 0
    flags = kinds.GRAD if state.torch.is_grad_enabled() else 0
    if root is None:
        mark(kinds.FORWARD_BEGIN, flags | kinds.TRAINING)
    else:
        flags |= kinds.TRAINING if root.training else 0
        mark(kinds.FORWARD_BEGIN, flags, modules.number(root, outermost=True))
        given.remember(kinds.INPUT, passed[1:])
    return kinds.FORWARD_BEGIN


def end_late(begun: int) -> None:
    """Marks the end of what begin_late began: what the script does about the failure is no part of it."""
    if begun:
        mark(begun + 1, kinds.REPAIRED if begun == kinds.FORWARD_BEGIN else 0)
