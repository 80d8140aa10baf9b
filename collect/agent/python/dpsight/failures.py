"""What held the memory when a request failed, and which module it was for. Bare steps have no tags, nor marks of inner
modules, so it is looked up at that moment: what an instrumented step tags as it begins, what models were given in this
one, what autograd's graph holds, and what the functions under way have as local variables.

No memory of the device is needed for it, and nothing is kept: a frame forgets what it was asked for.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

from dpsight import backward, forward, given, held, kinds, modules, optimizers, saved, strays, tags
from dpsight.marks import tag_name
from dpsight.state import Calm, local, spared, state
from dpsight.tensors import addresses, grad_fns, plain_types, quiet
from dpsight.torch_compat import is_function, node_number, private, variables

_T = TypeVar("_T")
_MOST_FRAMES = 1000
_refused: set[str] = set()  # what has failed to be looked up


def module() -> int:
    """The number of the module that this thread asks for memory for, where a bare step has no mark of it; 0 = none."""
    if state.instrumented:
        return 0
    for frame in frames(script()):
        if forward.is_call(frame.f_code):
            passed = variables(frame).get("args")
            if not passed:
                return 0
            number = modules.number(passed[0], outermost=False)
            if local.calls and not backward.running():
                saved.unfinished(local.calls[0][1], local.calls[0][3], number)
            return number
    if not backward.running() or local.backward:
        return 0
    node = private.current_node() if private.current_node is not None else None
    return saved.made_in(node_number(node)) if node is not None else 0


@quiet
def tag(recorded: bool) -> None:
    """Tags what the memory is of. recorded: events were being recorded, which tell when a block was made."""
    calm = backward.calm()
    records = tried("models", lambda: [r for root in modules.roots() for r in modules.tag_model(root, calm)], [])
    records += tried(
        "optimizers", lambda: [r for o in optimizers.alive() for r in optimizers.tag_optimizer(o, calm)], []
    )
    records += given.records()
    look = _Look({r[1] for r in records} | tags.owned)
    tried("functions", look.frames, None)
    for what, more in (
        ("graphs", lambda: look.graphs(calm)),
        ("attributes", held.kept),
        ("variables", lambda: look.variables(recorded)),
    ):
        found = tried(what, more, [])
        look.known.update(r[1] for r in found)
        records += found
    tags.emit(records + held.strayed(look.known))


def tried(what: str, look: Callable[[], _T], otherwise: _T) -> _T:
    """What a look finds, or otherwise: from its first failure on this look is taken no more, and all others go on."""
    if what in _refused:
        return otherwise
    try:
        return look()
    except Exception as error:
        spared("looking for what held the memory", error)
        _refused.add(what)
        return otherwise


def _places() -> Iterator[tuple[FrameType, str]]:
    """The frames of this thread, and where it is the engine's of those that wait for it; with each the category of what
    lives only as long as what it is in the middle of."""
    engine = backward.running() and not local.backward
    yield from _within(script(), "activation_gradients" if engine else "")
    if engine:
        others = sys._current_frames()
        others.pop(threading.get_ident(), None)  # else this frame is its own variable, and stays
        for top in others.values():
            if any(backward.is_run(f.f_code) for f in frames(top)):
                yield from _within(top, "")


def script() -> FrameType | None:
    """The frame in which this thread asked for memory. Not one of ours: a frame that has itself as a variable stays,
    with all that it knows."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _ours(frame) and not forward.is_call(frame.f_code):
        frame = frame.f_back
    return frame


def _ours(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    return type(name) is str and name.startswith("dpsight.")


def _within(top: FrameType | None, category: str) -> Iterator[tuple[FrameType, str]]:
    """The frames below top, outermost first."""
    for frame in reversed(list(frames(top))):
        if forward.is_call(frame.f_code):
            category = "forward_temporaries"
        elif optimizers.is_step(frame.f_code):
            category = "optimizer_temporaries"
        yield frame, category


def frames(top: FrameType | None) -> Iterator[FrameType]:
    """A frame and those below it."""
    frame = top
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


class _Look(strays.Walk):
    """A look at variables of functions."""

    def __init__(self, known: set[int]) -> None:
        super().__init__(known)
        self._found: list[tuple[str, str, Any]] = []
        self._globals: list[Any] = []  # strays.py walks those
        self._within = ""

    def frames(self) -> None:
        """Looks at the variables of all functions under way."""
        for frame, within in _places():
            self.frame(frame, within)

    def frame(self, frame: FrameType, within: str) -> None:
        """Looks at a function's variables, but for our own: they are the script's once more."""
        code = frame.f_code
        if not is_function(code):
            self._globals += [v for v in list(frame.f_globals.values()) if type(v) in plain_types()]
            return
        if _ours(frame) and not backward.is_run(code):
            return
        self._within = within
        where = getattr(code, "co_qualname", code.co_name)
        for key, value in variables(frame).items():
            self.visit(value, f"local {key} of {where}", 0)

    def tensor(self, tensor: Any, where: str) -> None:
        """Notes a tensor."""
        if type(tensor) in plain_types() and tensor.is_cuda:
            self._found.append((self._within, where, tensor))

    def graphs(self, calm: Calm | None) -> list[tags.Record]:
        """Records of what the graphs below the variables hold."""
        if calm is backward.nowhere:
            return []
        nodes = grad_fns([tensor for _, _, tensor in self._found] + self._globals + given.outputs())
        return saved.below(nodes, calm)

    def variables(self, recorded: bool) -> list[tags.Record]:
        """Records of what is nothing else. Of what was made inside a pass events tell more."""
        out: list[tags.Record] = []
        for within, where, tensor in self._found:
            nodes = grad_fns([tensor]) if within == "forward_temporaries" else []
            if within and recorded and not nodes:
                continue
            for address, size, dtype in addresses(tensor):
                if address in self.known:
                    continue
                self.known.add(address)
                if nodes:  # what takes it had no memory to go on: it is held for backward, or would be
                    out.append((kinds.SAVED_TENSOR, address, size, *saved.made(nodes[0]), dtype))
                elif within:
                    out.append((kinds.USER, address, size, tag_name(where), tag_name(within), dtype))
                else:
                    out.append((kinds.HELD, address, size, tag_name(where), 0, dtype))
        return out
