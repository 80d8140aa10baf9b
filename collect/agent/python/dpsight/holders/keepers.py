"""Records which Python object keeps each block that is no parameter, buffer, gradient or optimizer state. Looks happen
at the end of instrumented steps, at a failed request, between lines of the script and at the end.

A look at a million objects takes one or two tenths of a second. On a GPU, looks are limited to a share of the time,
except at the end, where no further step is timed. In a prediction the number of looks is limited instead, so that equal
runs have the same looks.
"""

from __future__ import annotations

import functools
import time
from typing import Any, NamedTuple

from dpsight import kinds
from dpsight.graph_safety import safe_devices
from dpsight.holders import climb
from dpsight.holders.climb import Climb, Path
from dpsight.holders.names import Names, gradients, title
from dpsight.holders.roots import Block, Roots
from dpsight.masking import mask
from dpsight.recorder import MODULES, drains, events, freeze_threads, guarded, recorder
from dpsight.registry import registry
from dpsight.tags import tags
from dpsight.tensors import held, living, quiet
from dpsight.torch_compat import Weak, expired, private, weak

_SHARE, _FREE_NS = 0.008, 50_000_000  # share of a GPU run's time for looks, and time that they may always take
_WHOLE = 6  # a complete look takes at most this many times as long as finding the living tensors
_LONGEST_NS = 500_000_000  # for one look on a GPU
_LONGEST_OOM_NS = 2_000_000_000  # for one look on a GPU at a failed request, whatever earlier looks took
_UNLIMITED = ("oom", "exit")  # moments at which a look always happens
_FAILURES = 4  # failed requests that each get a look; after these the 8th, the 16th and so on
_WORK = 384  # objects whose referrers one look searches
_MOST = 128  # tensors with graphs, and others, from which one look starts
_MOST_BLOCKS = 2_000  # blocks that one look records
_EACH = 3  # first steps of a prediction that each get a look; then steps that come this many times later
_LATER = 1.5
_AGAIN = 4  # number of looks after which blocks with a known holder are searched again
_KINDS = {climb.CYCLE: "cycle", climb.NOBODY: "native"}


class Said(NamedTuple):
    """What was last recorded about a block."""

    storage: Weak | None
    bytes: int
    path: Path


class Keepers:
    """The recorded keepers of blocks."""

    def __init__(self) -> None:
        self._was_instrumented = True
        self._began_ns = 0
        self._spent_ns = 0
        self._needed_ns = 0  # time that the abandoned look needed
        self._looks = 0
        self._next = 0  # next step of a prediction with a look
        self._held: list[int] = []  # bytes and blocks at the end of the last step with a look
        self._failures = 0  # failed requests
        self._anew = False  # whether functions may have ended by an exception since the last look
        self._made = 0  # number of looks, at any moment
        self._said: dict[int, Said] = {}  # by address; the blocks that were searched last come last

    def install(self) -> None:
        """Subscribes to the ends of steps and of the process."""
        events.step_begins.subscribe(self._step_begins)
        events.exit_begins.subscribe(self._exit_begins)

    def _step_begins(self, number: int, recorded: bool) -> None:
        instrumented = recorder.level >= MODULES
        was, self._was_instrumented = self._was_instrumented, instrumented
        if recorded and was and recorder.cuda and recorder.tagging and drains.recording and self._is_due(number):
            self.look("step")

    def _exit_begins(self) -> None:
        if recorder.tagging and drains.recording:
            self.look("exit")

    def _is_due(self, number: int) -> bool:
        if not recorder.settings.every_step:
            return self._affords()
        if number < self._next or not self._is_other():
            return False
        self._looks += 1
        if self._looks > _EACH:
            self._next = int(number * _LATER) + 1
        return True

    def _is_other(self) -> bool:
        """Whether memory changed since the end of the last step. If bytes and blocks are equal, nothing new is kept."""
        stats = private.memory_stats(private.current_device())
        held = [stats[what]["all"]["current"] for what in ("allocated_bytes", "allocation")]
        was, self._held = self._held, held
        return held != was

    def _affords(self) -> bool:
        """Whether a look on a GPU would keep to the limits of time."""
        return self._left_ns() > self._needed_ns

    def _left_ns(self) -> int:
        now = time.monotonic_ns()
        self._began_ns = self._began_ns or now
        return _FREE_NS + int(_SHARE * (now - self._began_ns)) - self._spent_ns

    def failed(self) -> None:
        """Called when a request has failed. A script may catch any number of such failures."""
        self._failures += 1
        if self._failures <= _FAILURES or self._failures & (self._failures - 1) == 0:
            self.look("oom")

    @guarded("looking for who keeps the memory")
    def look(self, moment: str, tensors: list[Any] | None = None) -> None:
        """Searches for keepers, and writes those that are new. tensors: the living tensors, if the caller has them
        already."""
        began = time.monotonic_ns()
        with freeze_threads():
            found = self._find(began, moment, tensors)
        if found is not None:
            blocks, complete = found
            k = recorder.mark(kinds.HOLDERS, 0, len(blocks))
            recorder.frame(kinds.FRAME_HOLDERS, {"k": k, "moment": moment, "complete": complete, "blocks": blocks})
            self._anew = moment == "oom"
        self._spent_ns += time.monotonic_ns() - began

    @quiet
    def _find(self, began: int, moment: str, tensors: list[Any] | None) -> tuple[list[list[Any]], bool] | None:
        """Returns the record of each block, and whether it is complete. Returns None if there is not enough time."""
        safe = safe_devices()
        roots = Roots(safe, living() if tensors is None else tensors)
        self._needed_ns = 0
        if not recorder.settings.every_step and moment not in _UNLIMITED:
            needed = _WHOLE * (time.monotonic_ns() - began)
            if needed > self._left_ns():
                self._needed_ns = needed
                return None
        known = tags.known_places()
        names = Names()
        found = names.found
        known |= gradients(found, roots.parameters, safe)
        for p in roots.parameters:
            known.update(address for _, address, _ in held(p))
        self._forget()
        blocks = self._asked(roots, known, moment)
        until = began + (_LONGEST_OOM_NS if moment == "oom" else _LONGEST_NS)
        goes_on = functools.partial(self._goes_on, until)
        search = Climb(found, title, _WORK, goes_on)
        search.hide(*roots.hidden())
        # All blocks are searched together: each level takes as long for one object as for all. A block that a variable
        # holds for the first time is mostly freed before the next look, so it is searched only then.
        asked = [b.root for b in blocks[:_MOST_BLOCKS] if b.root is not None]
        asked += [t for b in blocks[:_MOST_BLOCKS] for t in b.tensors]
        told = {id(t) for b in blocks if b.address in self._said for t in (b.root, *b.tensors)}
        new = () if moment in _UNLIMITED else set(map(id, asked)) - told
        ways = search.ways(asked, _MOST, new)
        out = [entry for entry in (self._entry(block, ways) for block in blocks) if entry is not None]
        complete = roots.complete and search.complete
        if roots.complete:
            out += self._left_behind(roots)
        if self._failures:
            search = Climb(found, _untitled, _WORK, goes_on)
            search.hide(*roots.hidden(), asked, ways)
            out += self._models(search, names.modules)
            complete = complete and search.complete
        return out, complete

    def _models(self, search: Climb, named: set[int]) -> list[list[Any]]:
        """The records of parameters of models that are kept by the frames of an exception and that no name leads to.
        For other models the keeper does not matter."""
        roots = [root for root in registry.roots() if id(root) not in named]
        ways = search.ways(roots, _MOST)
        out = []
        for root in roots:
            way = ways.get(id(root))
            if way is None or not way.exception:
                continue
            for name, parameter in root.named_parameters():
                path = Path(way.rank, f"{way.text}.{name}", exception=True)
                for storage, address, size in held(parameter):
                    said = self._said.get(address)
                    if said is None or said.path != path:
                        self._said[address] = Said(weak(storage), size, path)
                        out.append([address, size, 0, "exception", mask(path.text)])
        return out

    def _asked(self, roots: Roots, known: set[int], moment: str) -> list[Block]:
        """The blocks to search: new blocks first, by size, then blocks that only a variable held. Every few looks, if
        there is room, known blocks are searched again, since their holders may have changed. The longest unchecked come
        first."""
        blocks = [b for b in roots.blocks.values() if b.address not in known]
        first = [b for b in blocks if not self._lasts(b)]
        first.sort(key=lambda b: (b.address in self._said, -b.bytes))
        self._made += 1
        if self._made % _AGAIN and moment not in _UNLIMITED:
            return first
        asked = sum(len(b.tensors) + (b.root is not None) for b in first)
        order = {address: i for i, address in enumerate(self._said)}
        for b in sorted((b for b in blocks if self._lasts(b)), key=lambda b: order[b.address]):
            asked += len(b.tensors) + (b.root is not None)
            if asked > _MOST:
                break
            first.append(b)
        return first

    def _left_behind(self, roots: Roots) -> list[list[Any]]:
        """The records of blocks that Python held before, and to which no Python object leads now."""
        out = []
        for address, said in self._said.items():
            if address not in roots.blocks and said.path.rank != climb.NOBODY and said.storage is not None:
                self._said[address] = Said(said.storage, said.bytes, Path(climb.NOBODY, ""))
                out.append([address, said.bytes, 0, _KINDS[climb.NOBODY], ""])
        return out

    def _goes_on(self, until: int) -> bool:
        return recorder.settings.every_step or time.monotonic_ns() < until

    def _forget(self) -> None:
        for address, said in list(self._said.items()):
            if expired(said.storage):
                del self._said[address]

    def _lasts(self, block: Block) -> bool:
        """Whether the record of a block is still valid. A block that a function's variable holds may have another
        holder after the function has ended."""
        said = self._said.get(block.address)
        return said is not None and said.path.rank < (climb.INSIDE if self._anew else climb.VARIABLE)

    def _entry(self, block: Block, ways: dict[int, Path]) -> list[Any] | None:
        """The record of a block: its address, its bytes, the bytes that its tensors show, how it is kept, and who keeps
        it."""
        found: list[tuple[Path, str]] = []
        shown: list[tuple[bool, int]] = []  # by tensor: whether it is kept only for now, and its bytes
        for tensor, viewed in zip(block.tensors, block.viewed, strict=False):
            way = ways.get(id(tensor))
            if way is not None:
                found.append((way, _kind(way, "python")))
                if way.rank < climb.NOBODY:
                    shown.append((way.rank >= climb.VARIABLE, viewed))
        if block.root is not None:
            way = ways.get(id(block.root))
            if way is not None and way.rank < climb.NOBODY:
                text = f"{way.text} → grad_fn → saved tensor of {block.node}"
                found.append((Path(way.rank, text, way.exception), _kind(way, "graph")))
                if not block.tensors:
                    shown.append((way.rank >= climb.VARIABLE, block.viewed[0]))
        if not found:
            return None
        path, kind = min(found, key=lambda f: f[0].rank)
        said = self._said.pop(block.address, None)  # moves to the end, as searched last
        self._said[block.address] = Said(weak(block.storage), block.bytes, path)
        if said is not None and said.path == path:
            return None
        passing = path.rank >= climb.VARIABLE
        most = max((viewed for for_now, viewed in shown if for_now == passing), default=0)
        return [block.address, block.bytes, most if most < block.bytes else 0, kind, mask(path.text)]


def _kind(way: Path, otherwise: str) -> str:
    return "exception" if way.exception else _KINDS.get(way.rank, otherwise)


def _untitled(_value: Any) -> None:
    """A title function for searches in which no path may begin with a module."""


keepers = recorder.part(Keepers)
