"""Finds who keeps an object alive: it searches for what refers to the object, then for what refers to that, until it
reaches something with a name. gc.get_referrers() visits all objects that the garbage collector knows, 20 ms for a
million, for any number of objects that it searches. So all objects are searched together, level by level, with one call
for each level.

Ids are used instead of objects, since a list of objects would keep them alive beyond a look. hide() names the
containers that must not count as holders.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Container, Iterable
from types import AsyncGeneratorType, CellType, CoroutineType, FrameType, FunctionType, GeneratorType
from typing import Any, NamedTuple
from weakref import ReferenceType

from dpsight.holders import references
from dpsight.holders.frames import ours
from dpsight.holders.references import Step

_LEVELS = 10
_BEYOND = 2  # further levels that are searched after an acceptable path was found, for a better one
_MOST_PATHS = 2_000  # the most places that the search for the best path visits

# How lasting a holder is. A path that begins with the first kind is the best.
NAMED = 0  # a global, an attribute of a model or of a class, a weak reference's callback
INSIDE = 1  # something inside the value of a function's variable
OBJECT = 2  # a closure, a default argument, a generator, an exception: the object is known, but not its own keeper
VARIABLE = 3  # a variable of a function or of the script: a loop assigns it again in its next turn
CYCLE = 4  # only the object itself keeps it, until the garbage collector runs
UNNAMED = 5  # an object without a name
NOBODY = 6  # no Python object holds it


Title = Callable[[Any], "str | None"]


class Name(NamedTuple):
    """The name of an object that needs no holder."""

    text: str
    after: str = ""  # text after entries and attributes: "local kept" + "[17]" + " of train()"
    variable: bool = False


class Path(NamedTuple):
    """The path from a keeper to the object that it keeps."""

    rank: int
    text: str
    exception: bool = False  # the path goes through the frames of an exception


class Climb:
    """A search for holders. names: by id(), the objects with names, which need no holder. title: returns the name of an
    object that is a model's module, else None. goes_on: returns whether there is time to search one more level."""

    def __init__(self, names: dict[int, Name], title: Title, work: int, goes_on: Callable[[], bool]) -> None:
        self._names = names
        self._title = title
        self._goes_on = goes_on
        self._left = work  # objects whose referrers may still be searched
        self.complete = True  # nothing was left out because the work was limited
        self._objects: dict[int, Any] = {}
        self._parents: dict[int, list[tuple[int, Step]]] = {}  # by object: its referrers, with the steps from them
        self._roots: set[int] = set()
        self._hidden = {id(self.__dict__), id(self._objects), id(names)}

    def hide(self, *containers: Any) -> None:
        """Excludes containers as holders, since they refer to objects only because of the search."""
        self._hidden.update(map(id, containers))

    def ways(self, objects: list[Any], most: int, content: Container[int] = ()) -> dict[int, Path]:
        """Returns the best path to each of the first most objects, by id(). content: the ids of objects for which their
        own names suffice."""
        self.hide(objects)
        roots: list[Any] = []
        self.hide(roots)
        known: set[int] = set()
        for value in objects:
            if id(value) not in known:
                known.add(id(value))
                roots.append(value)
        self.complete = self.complete and len(roots) <= most
        del roots[most:]
        found = zip(map(id, roots), self._paths(roots, content), strict=True)
        return {key: path for key, path in found if path is not None}

    def _paths(self, roots: list[Any], content: Container[int]) -> list[Path | None]:
        for root in roots:
            self._objects[id(root)] = root
        keys = [id(root) for root in roots]
        self._roots.update(keys)
        open_ = {key: 0 for key in keys if key not in content or key not in self._names}
        since = dict.fromkeys(open_, 0)
        for _ in range(_LEVELS):
            for key in list(open_):
                rank = self._best(key)[0]
                if rank <= NAMED or rank <= VARIABLE and since[key] >= _BEYOND:
                    del open_[key]
                since[key] += rank <= VARIABLE
            frontier = list(dict.fromkeys(leaf for key in open_ for leaf in self._leaves(key)))
            if not frontier:
                break
            if not self._goes_on():
                self.complete = False
                break
            self.complete = self.complete and len(frontier) <= self._left
            self._look_up(frontier[: self._left])
            if self._left <= 0:
                break
        return [self._path(key) for key in keys]

    def _look_up(self, keys: list[int]) -> None:
        """Searches for the referrers of some objects."""
        if not keys:
            return
        self._left -= len(keys)
        wanted = {key: self._objects[key] for key in keys}
        self.hide(wanted)
        for key in keys:
            self._parents[key] = []
        found = gc.get_referrers(*wanted.values())
        self.hide(found)
        for holder in found:
            if id(holder) in self._hidden:
                continue
            if type(holder) is FrameType and ours(holder):
                continue
            for target, step in references.steps(holder, wanted):
                self._parents[target].append((id(holder), step))
                self._objects.setdefault(id(holder), holder)

    # The best path among all that were found.

    def _best(self, key: int) -> tuple[int, list[int], list[Step]]:
        """The rank of the best path to an object, the objects on it, from the holder down, and the steps between
        them."""
        best: tuple[int, int, list[int], list[Step]] = (NOBODY, 0, [key], [])
        todo: list[tuple[list[int], list[Step]]] = [([key], [])]
        seen = {key}
        for way, taken in todo:  # it grows
            rank = self._rank(way, taken)
            if (rank, len(way)) < best[:2] or best[0] == NOBODY:
                best = (rank, len(way), way, taken)
            for parent, step in self._parents.get(way[0], ()) if not self._ends(way[0]) else ():
                if parent not in seen and len(todo) < _MOST_PATHS:
                    seen.add(parent)
                    todo.append(([parent, *way], [step, *taken]))
        return best[0], best[2], best[3]

    def _leaves(self, key: int) -> Iterable[int]:
        """The objects that lead to an object and whose own referrers have not been searched yet."""
        todo, seen = [key], {key}
        for at in todo:  # it grows
            if self._ends(at):
                continue
            if at not in self._parents:
                yield at
            for parent, _ in self._parents.get(at, ()):
                if parent not in seen and len(todo) < _MOST_PATHS:
                    seen.add(parent)
                    todo.append(parent)

    def _ends(self, key: int) -> bool:
        """Whether the search need not go beyond an object. An object with a name may have a more lasting holder: a
        result that a variable holds until the loop's next turn may also be in a list."""
        value = self._objects[key]
        if key in self._names and key not in self._roots:
            return True
        if type(value) is dict and references.module_name(value) is not None:
            return True
        return issubclass(type(value), type) or self._title(value) is not None

    def _rank(self, way: list[int], taken: list[Step]) -> int:
        """The rank of a path: how lasting its first object is."""
        key = way[0]
        value = self._objects[key]
        of_module = type(value) is dict and references.module_name(value) is not None
        if not taken and key in self._names or len(taken) == 1 and of_module:
            return VARIABLE
        if key in self._names:
            return INSIDE if self._names[key].variable else NAMED
        if self._ends(key) or taken and taken[0].kind == references.CALLBACK:
            return NAMED
        if isinstance_of(value, _OBJECTS):
            return OBJECT
        if key in self._parents:
            if not self._parents[key]:
                return UNNAMED if taken else NOBODY
            of_object = any(step.kind == references.FIELDS for _, step in self._parents[key])
            if not of_object and self._in_cycle(key):  # the cycle contains the object: its own name says more
                return CYCLE
        return NOBODY

    def _in_cycle(self, key: int) -> bool:
        """Whether an object keeps only itself: all its referrers are known and lead back to it."""
        todo, seen, itself = [key], {key}, False
        for at in todo:  # it grows
            if at not in self._parents or self._ends(at):
                return False
            for parent, _ in self._parents[at]:
                itself = itself or parent == key
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        return itself

    def _path(self, key: int) -> Path | None:
        rank, way, taken = self._best(key)
        if rank == NOBODY and key not in self._parents:
            return None
        if rank == NOBODY and self._parents[key]:
            rank = UNNAMED
        if rank == NOBODY:
            return Path(rank, "")
        exception = any(isinstance_of(self._objects[at], (BaseException,)) for at in way)
        return Path(rank, self._text(rank, way, taken), exception)

    # Paths in words.

    def _text(self, rank: int, way: list[int], taken: list[Step]) -> str:
        values = [self._objects[key] for key in way]
        line = _Line(*self._beginning(rank, way[0], taken))
        at = 0
        while at < len(taken):
            at += line.add(values, taken, at)
        return line.text()

    def _beginning(self, rank: int, key: int, taken: list[Step]) -> tuple[str, str]:
        value = self._objects[key]
        title = self._title(value)
        if title is not None:
            return title, ""
        name = self._names.get(key)
        if name is not None:
            described = _described(value)
            return name.text, f"{name.after} ({described})" if described else name.after
        if type(value) is dict and (module := references.module_name(value)) is not None:
            return ("global " if module == "__main__" else f"global {module}."), ""
        if rank == CYCLE:
            return f"cycle of {type(value).__name__}", ""
        if type(value) is FunctionType and taken and taken[0].kind in (references.CLOSURE, references.DEFAULTS):
            return "", ""
        if issubclass(type(value), type):
            return f"class {value.__name__}", ""
        return _described(value) or f"unnamed {type(value).__name__}", ""


_OBJECTS = (FunctionType, GeneratorType, CoroutineType, AsyncGeneratorType, BaseException)


def isinstance_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Does what isinstance() does without calling the script's classes."""
    return any(issubclass(type(value), kind) for kind in kinds)


def _described(value: Any) -> str:
    """The name of an object on a path that is more than a container; "" if it has none."""
    kind = type(value)
    if issubclass(kind, BaseException):
        return references.caught_at(value)
    if kind in (GeneratorType, CoroutineType, AsyncGeneratorType):
        return f"generator {value.__qualname__.replace('<locals>.', '')}()"
    if issubclass(kind, ReferenceType):
        return "weak reference"
    if kind is FrameType:
        return f"frame of {references.frame_name(value)}"
    return ""


class _Line:
    """A path's text while it is being built."""

    def __init__(self, start: str, after: str) -> None:
        self._parts = [(start, after)]  # parts that entries are appended to, each with the text after these

    def text(self) -> str:
        return " → ".join(part + after for part, after in self._parts if part)

    def _append(self, text: str) -> None:
        """Appends an entry or an attribute to the last named object."""
        part, after = self._parts[-1]
        self._parts[-1] = (part + text, after)

    def _go_on(self, text: str, after: str = "") -> None:
        self._parts.append((text, after))

    def add(self, values: list[Any], taken: list[Step], at: int) -> int:
        """Adds a step, or several that only make sense together. Returns how many it added."""
        step, holder, target = taken[at], values[at], values[at + 1]
        if step.kind == references.FIELDS and at + 1 < len(taken) and taken[at + 1].kind == references.INDEX:
            self._append(f".{taken[at + 1].text.strip(chr(39))}")
            self._describe(values[at + 2])
            return 2
        if step.kind == references.CLOSURE and at + 2 < len(taken) and taken[at + 2].kind == references.CELL:
            name = references.closure_name(holder, int(taken[at + 1].text))
            self._go_on(f"closure {name}", f" of {references.function_name(holder)}")
            return 3
        if step.kind == references.DEFAULTS and at + 1 < len(taken):
            name = references.default_name(holder, taken[at + 1].text)
            self._go_on(f"default argument {name}", f" of {references.function_name(holder)}")
            return 2
        if step.kind == references.INDEX:
            first = self._parts[0][0]
            is_name = len(self._parts) == 1 and first.startswith("global ") and first.endswith((" ", "."))
            self._append(step.text.strip("'") if is_name else f"[{step.text}]")
        elif step.kind == references.ATTRIBUTE:
            self._append(f".{step.text}")
        elif step.kind == references.LOCAL:
            self._go_on(f"local {step.text}")
        elif step.kind == references.CALLBACK:
            self._go_on("callback")
        elif step.kind == references.PART and type(target) not in (CellType, tuple):
            self._go_on(f"part of {type(holder).__name__}")
        self._describe(target)
        return 1

    def _describe(self, value: Any) -> None:
        described = _described(value)
        if described:
            self._go_on(described)
