"""Says who keeps each block that is not a parameter, buffer, gradient or optimizer state. It looks at the end of
instrumented steps, at a failed request, between lines of the script and at the end.

A look takes a tenth of a second or two among a million objects. On a GPU looks are limited to a share of the time,
except at the end, where no further step is timed. In a prediction they are limited by number, so that equal runs are
looked at alike.
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

_SHARE, _FREE_NS = 0.008, 50_000_000  # of the time that looks may take on a GPU, and what is always free
_WHOLE = 6  # times as long as finding the living tensors takes, a look takes with all that it may ask
_LONGEST_NS = 500_000_000  # of one look on a GPU
_LONGEST_OOM_NS = 2_000_000_000  # of one look on a GPU at a request that failed, whatever looks have taken
_UNLIMITED = ("oom", "exit")  # moments at which a look happens, whatever looks have taken
_FAILURES = 4  # requests that fail and are looked at one by one; then the 8th, the 16th and so on
_WORK = 384  # objects that one look asks about
_MOST = 128  # tensors that one look starts from, of graphs and of others
_MOST_BLOCKS = 2_000  # that one look tells of
_EACH = 3  # steps of a prediction that are all looked at; then each that comes this many times later
_LATER = 1.5
_AGAIN = 4  # looks, from one at which blocks whose holder is known are asked about to the next
_KINDS = {climb.CYCLE: "cycle", climb.NOBODY: "native"}


class Said(NamedTuple):
    """What was written of a block."""

    storage: Weak | None
    bytes: int
    path: Path


class Keepers:
    """Who was found to keep what."""

    def __init__(self) -> None:
        self._was_instrumented = True
        self._began_ns = 0
        self._spent_ns = 0
        self._needed_ns = 0  # by the look that was given up for want of time
        self._looks = 0
        self._next = 0  # step of a prediction
        self._held: list[int] = []  # bytes and blocks, at the end of the last step that was looked at
        self._failures = 0  # requests that failed
        self._anew = False  # functions may have ended by an exception since the last look
        self._made = 0  # looks, of whatever moment
        self._said: dict[int, Said] = {}  # by address; those that were asked about last come last

    def install(self) -> None:
        """Waits for the ends of steps and of the process."""
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
        """Whether memory changed since the last step's end. If bytes and blocks are the same, nothing new is kept."""
        stats = private.memory_stats(private.current_device())
        held = [stats[what]["all"]["current"] for what in ("allocated_bytes", "allocation")]
        was, self._held = self._held, held
        return held != was

    def _affords(self) -> bool:
        """Whether there is time for a look on a GPU."""
        return self._left_ns() > self._needed_ns

    def _left_ns(self) -> int:
        now = time.monotonic_ns()
        self._began_ns = self._began_ns or now
        return _FREE_NS + int(_SHARE * (now - self._began_ns)) - self._spent_ns

    def failed(self) -> None:
        """A request has failed. A script may fail, and go on, any number of times."""
        self._failures += 1
        if self._failures <= _FAILURES or self._failures & (self._failures - 1) == 0:
            self.look("oom")

    @guarded("looking for who keeps the memory")
    def look(self, moment: str, tensors: list[Any] | None = None) -> None:
        """Looks, and writes what is new. tensors: the living tensors, if the caller has them already."""
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
        """The record of each block, and whether it is complete; None = there is no time for it."""
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
        # All at once: each level of the climb takes as long for one object as for all. What a variable holds for
        # the first time will mostly be gone at the next look, so it is asked about only then.
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
        """The records of parameters of models that the frames of an exception keep and that no name leads to. For
        other models the keeper does not matter."""
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
        """The blocks whose holders to look for: new ones first, by size, then blocks that only a variable held.
        Every few looks, if there is room, known blocks are looked at again, the longest unchecked first, since
        their holder may have changed."""
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
        """The records of blocks that Python held before, and that no Python object leads to any more."""
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
        """The record of a block: its address, its bytes, the bytes that its tensors show, how it is kept, and by
        whom."""
        found: list[tuple[Path, str]] = []
        shown: list[tuple[bool, int]] = []  # whether the tensor is kept only for now, and what it shows
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
        said = self._said.pop(block.address, None)  # it is the last that was asked about
        self._said[block.address] = Said(weak(block.storage), block.bytes, path)
        if said is not None and said.path == path:
            return None
        passing = path.rank >= climb.VARIABLE
        most = max((viewed for for_now, viewed in shown if for_now == passing), default=0)
        return [block.address, block.bytes, most if most < block.bytes else 0, kind, mask(path.text)]


def _kind(way: Path, otherwise: str) -> str:
    return "exception" if way.exception else _KINDS.get(way.rank, otherwise)


def _untitled(_value: Any) -> None:
    """No object is where a path begins because it is a module."""


keepers = recorder.part(Keepers)
