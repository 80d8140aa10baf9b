"""Changes other modules' and classes' attributes in such a way that all changes can be undone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

from dpsight.recorder import guarded, recorder, stamps, step_limit, steps, thread

_MISSING = object()


class Patches:
    """A list of changes. Installing makes all changes or none: a partly installed agent broke a script once."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def set(self, owner: Any, attribute: str, value: Any) -> None:
        """Sets an attribute of a module, class or object."""
        old = vars(owner).get(attribute, _MISSING)

        def undo() -> None:
            if vars(owner).get(attribute) is not value:
                return  # other code has wrapped ours since, and calls it: it now does nothing
            if old is _MISSING:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, old)

        setattr(owner, attribute, value)
        self._undo.append(undo)

    def hook(self, handle: Any) -> None:
        """Remembers a registered hook by its handle."""
        self._undo.append(handle.remove)

    def on_undo(self, forget: Callable[[], Any]) -> None:
        """Arranges that forget is called when the changes so far are undone."""
        self._undo.append(forget)

    def undo(self) -> None:
        """Undoes all changes, the last one first."""
        while self._undo:
            self._undo.pop()()


class Installed:
    """All changes that the agent has made in this process."""

    def __init__(self) -> None:
        self._patches: list[Patches] = []

    def new(self) -> Patches:
        """Returns a new list for later changes."""
        patches = Patches()
        self._patches.append(patches)
        return patches

    def undo(self) -> None:
        """Undoes all changes, the last one first."""
        while self._patches:
            self._patches.pop().undo()


installed = Installed()


def method(owner: type, attribute: str) -> Callable[..., Any] | None:
    """Returns a class's own method; None if it only inherits one."""
    value = vars(owner).get(attribute)
    return value if callable(value) else None


def bracket(
    function: Callable[..., Any],
    kind: int,
    number: Callable[[tuple[Any, ...]], int] | int = 0,
    before: Callable[[tuple[Any, ...]], None] | None = None,
    after: Callable[[tuple[Any, ...]], tuple[int, Hashable]] | None = None,
    phase: bool = False,
) -> Callable[..., Any]:
    """Returns the function with marks of a span of this kind around it. number returns the operand of the marks. after
    returns the flags of the second mark, and the key of the optimizer if an update has ended with it, else 0. phase:
    the marks only delimit a phase, so steps without phases have none.
    """
    compiling = recorder.torch.compiler.is_dynamo_compiling
    what = f"the hook of {function.__qualname__}"

    @guarded(what, otherwise=0, opens=(kind,))
    def begins(args: tuple[Any, ...]) -> int:
        a = number if isinstance(number, int) else number(args)
        stamps.stamp(thread.begin(kind, 0, a))
        if before is not None:
            before(args)
        return a

    @guarded(what, opens=(kind,))
    def ended(args: tuple[Any, ...], a: int, whole: bool) -> None:
        thread.leave(kind)
        flags, key = after(args) if after is not None else (0, 0)
        stamps.stamp(recorder.mark(kind + 1, flags, a))
        if key and whole:
            steps.updated(key)

    @functools.wraps(function)
    def bracketed(*args: Any, **kwargs: Any) -> Any:
        if compiling() or not recorder.level:
            return function(*args, **kwargs)
        if phase and recorder.without_phases():
            return function(*args, **kwargs)
        a, whole = begins(args), False
        try:
            out = function(*args, **kwargs)
            whole = True
        finally:
            ended(args, a, whole)
        if after is not None:
            step_limit.leave()
        return out

    return bracketed
