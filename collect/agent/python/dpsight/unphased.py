"""Steps without phases. In a long run of short steps most bare ones are marked and stamped at their end only: marks and
CUDA events around forward, backward and zero_grad would take several per cent of a step of ten milliseconds that the
host launches, and what each phase takes is known by the others. Where every step is measured on purpose (by plan())
or recorded, and on a phantom GPU, which has no times, all steps have their phases.

Only the thread that trains passes over its marks; updates are marked in every step, by which offline steps are found.
"""

from __future__ import annotations

from dpsight import backward, failures, forward, kinds, modules
from dpsight.marks import mark
from dpsight.state import CALLED, local, state


def begin_late() -> int:
    """Marks the beginning of the pass in which a request has just failed, where nothing else has: the kind of that
    mark, 0 = there is none to mark. The pass is the one whose functions are under way; the loss is part of forward."""
    if not state.unphased or local.optimizer or local.calls or local.backward:
        return 0
    if backward.running():
        mark(kinds.BACKWARD_BEGIN, kinds.ACCUMULATE, 1)
        return kinds.BACKWARD_BEGIN
    root = None
    for frame in failures.frames(failures.script()):
        if forward.is_call(frame.f_code):
            passed = failures.variables(frame).get("args")
            root = passed[0] if passed else root
    if root is None and state.passed != CALLED:
        return 0
    flags = kinds.GRAD if state.torch.is_grad_enabled() else 0
    if root is None:
        mark(kinds.FORWARD_BEGIN, flags | kinds.TRAINING)
    else:
        flags |= kinds.TRAINING if root.training else 0
        mark(kinds.FORWARD_BEGIN, flags, modules.number(root, outermost=False))
    return kinds.FORWARD_BEGIN


def end_late(begun: int) -> None:
    """Marks the end of what begin_late began: what the script does about the failure is no part of it."""
    if begun:
        mark(begun + 1, kinds.REPAIRED if begun == kinds.FORWARD_BEGIN else 0)
