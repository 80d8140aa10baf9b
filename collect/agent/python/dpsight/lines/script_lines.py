"""Finds which line of the script requests memory. When a line of the user's own code is reached, its number is added to
the allocator's metadata, behind the mark's number: "1234@56". For backward, a hook on each node of the graph adds the
line that made the node, since the engine's threads run no line of the script. The node's sequence number tells the
line.

From Python 3.12 on, sys.monitoring reports lines, under a tool id that only dpsight uses. Before Python 3.12, the
phantom GPU's library reports lines. sys.settrace is unsuitable: until Python 3.12 it copies the variables of every
followed function, and objects in a copy would live longer. torch's own stacks cost three times as much and do not cover
backward.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, TypeVar

from dpsight import kinds
from dpsight.lines.host_loops import loops
from dpsight.lines.node_lines import Table, below, made
from dpsight.lines.sources import TRACED, Source, find_source
from dpsight.recorder import TAGS, drains, events, recorder, steps
from dpsight.script_code import script_code
from dpsight.torch_compat import private

_WHAT = "following the script's lines"
_BUDGET = 0.05  # share of wall time that following lines may take on a GPU
_FREE_NS = 20_000_000  # time that following lines may always take

_frame = sys._getframe


_F = TypeVar("_F", bound=Callable[..., Any])


def _or_none(method: _F) -> _F:
    """Wraps a method: if it fails, no more lines are followed."""

    @functools.wraps(method)
    def caught(self: Lines, *args: Any) -> Any:
        try:
            return method(self, *args)
        except Exception as error:
            self.failed(error)
            return None

    return caught  # type: ignore[return-value]


class ThreadLine(threading.local):
    """The line on which a thread is."""

    def __init__(self) -> None:
        self.k = "" if threading.get_ident() in recorder.threads() else "0"  # the last mark's number; "" = unknown
        self.turn = 0  # the turn in which k was noted
        self.line = ""  # "@" and the line's number
        self.node = ""  # line of the node that autograd's engine runs in this thread
        self.runs: list[list[Any]] = []  # for each engine run that this thread waits for: the handles of hooks on nodes
        self.table = Table()
        lines.add_table(self.table)

    def reaches(self, line: str) -> None:
        """The thread reaches a line: its later requests, and the nodes that it makes, belong to this line."""
        self.line = line
        self.table.add(private.sequence_number(), line, lines.step)
        if self.k and (self.turn == lines.turn or self.k == "0"):
            private.set_metadata(self.k + line)


class Lines:
    """The reached lines by number, and whether lines are followed."""

    def __init__(self) -> None:
        self.on = False
        self.turn = 0  # how often following lines has begun
        self.step = 0  # number of steps that have begun
        self._source: Source | None = None
        self._by = ""  # the source that reports, or has reported, lines
        self._reason = ""  # why lines are not followed, or no longer
        self._skipped = 0  # instrumented steps without lines, because earlier lines took too much time
        self._own: dict[int, dict[int, str]] = {}  # by id() of code: the numbers of its lines, as text
        self._codes: list[CodeType] = []  # keeps the code alive, so that its id() stays unique
        self._places: list[tuple[CodeType, int]] = []  # code and line by number, from 1
        self._written = 0
        self._lock = threading.Lock()
        self._at_node: dict[str, Callable[[Any], None]] = {}
        self._tables: weakref.WeakSet[Table] = weakref.WeakSet()  # the tables of all threads
        self._of_step: list[Table] = []  # tables seen in this step, also those of ended threads
        # The cost of following lines.
        self._count = 0
        self._each_ns = 0.0  # time per line
        self._other_ns = 0  # time of work that is not done for each line
        self._began_ns = 0
        self._tell_at = 0  # the count of lines at which listeners are called next
        self._each = False  # whether a listener wants every line

    def install(self) -> None:
        """Begins to follow lines when memory recording begins."""
        if recorder.settings.bare or not recorder.settings.lines:
            return
        events.cuda_ready.subscribe(self._begin)
        events.step_begins.subscribe(self._step_begins)
        events.model_called.subscribe(self._look_again)
        events.backward_begins.subscribe(self._look_again)
        events.run_begins.subscribe(self._hook)
        events.run_ended.subscribe(self._run_ended)
        events.drain_begins.subscribe(self._write)
        events.drain_alone.subscribe(self._write)
        events.silenced.subscribe(self.abandon)
        events.process_ends.subscribe(self._end)

    # When lines are followed.

    @_or_none
    def _begin(self) -> None:
        if not recorder.tagging:
            return
        self._began_ns = time.monotonic_ns()
        self._source, self._reason = find_source(self._reached, self._left, self._resumed, self._is_own)
        if self._source is None:
            return
        self._by = self._source.NAME
        for top in sys._current_frames().values():
            frame: FrameType | None = top
            while frame is not None:
                self._is_own(frame.f_code)
                frame = frame.f_back
        del top  # a frame that refers to itself would keep its callers' tensors until the garbage collector runs
        self._choose()
        if self.on:
            steps.mark_mode()
            self._each_ns = self._measure()

    @_or_none
    def _step_begins(self, _number: int, _recorded: bool) -> None:
        self.step += 1
        with self._lock:
            self._of_step.clear()
            self._of_step += self._tables
        self._choose()
        self._look_again()

    def _choose(self) -> None:
        """Begins or ends following lines. Lines are followed while allocations are recorded. On a GPU that is so only
        in instrumented steps."""
        measured = recorder.settings.source == "measured"
        wanted = self._source is not None and drains.recording and (recorder.level >= TAGS or not measured)
        if wanted and measured:
            spent = self._spent_ns()
            in_budget = spent < _FREE_NS or spent < _BUDGET * (time.monotonic_ns() - self._began_ns)
            self._skipped += wanted and not in_budget
            wanted = wanted and in_budget
        if wanted != self.on:
            self._follow(wanted)

    def _follow(self, on: bool) -> None:
        self.on = on
        steps.follows_lines(on)
        if self._source is None:
            return
        if on:
            self.turn += 1
            recorder.replace_metadata(private.set_metadata, _mark_with_line)
            here.turn, here.k = self.turn, ""  # the next mark comes at once
            here.reaches(self._line_of(_frame(1)))
            with self._timed():
                self._source.follow(self._codes)
        else:
            with self._timed():
                self._source.rest(self._codes)
            recorder.replace_metadata(_mark_with_line, private.set_metadata)

    def add_table(self, table: Table) -> None:
        """Adds the table of a thread that has reached its first line."""
        with self._lock:
            self._tables.add(table)
            self._of_step.append(table)

    def pass_over(self, count: int) -> None:
        """Lets count lines pass before the next is reported to listeners."""
        self._tell_at = self._count + (0 if self._each else count) + 1

    def tell_each(self) -> None:
        """From now on, every line is reported to listeners."""
        self._each, self._tell_at = True, 0

    def abandon(self) -> None:
        """Ends following lines: recording has ended, or this is a forked child."""
        source, self._source = self._source, None
        self.on = False
        steps.follows_lines(False)
        if source is not None:
            source.rest(self._codes)
            source.end()

    @_or_none
    def _end(self) -> None:
        if self.on:
            self._follow(False)
        source, self._source = self._source, None
        if source is not None:
            source.end()

    # Events of lines.

    def _is_own(self, code: CodeType) -> bool:
        """Whether code is the user's own. If it is and its lines are not followed yet, they are from now on."""
        try:
            known = id(code)
            if known in self._own:
                return True
            own = script_code.is_own(code.co_filename)
            if own:
                with self._lock:
                    self._own.setdefault(known, {})
                    self._codes.append(code)
                if self.on and self._source is not None:
                    self._source.add(code)
            return own
        except Exception as error:
            self.failed(error)
            return False

    def _reached(self, code: CodeType, line: int) -> Any:
        """Called when a line of the user's own code is reached."""
        try:
            mark = self._own[id(code)].get(line) or self._number(code, line)
            here.reaches(mark)
            self._count += 1
            if loops.counts is not None:
                loops.counts[mark] = loops.counts.get(mark, 0) + 1
            if self._count >= self._tell_at:
                events.line_reached.tell()
            if loops.lines and self._passes_over(mark):
                return self._source.PASS_OVER if self._source is not None else None
            if self._count >= loops.window_ends:
                loops.end_window(self._count)
        except Exception as error:
            self.failed(error)
        return None

    def _left(self, code: CodeType, _offset: int = 0, _value: Any = None) -> None:
        """Called when a function of the user's returns or raises, or a generator yields: the caller is in the middle of
        its line. If some lines are skipped, the next line is unknown."""
        try:
            if id(code) in self._own:
                here.reaches("" if loops.passed else self._line_of(_frame(1).f_back))
                self._count += 1
        except Exception as error:
            self.failed(error)

    def _resumed(self, code: CodeType, _offset: int = 0, _value: Any = None) -> None:
        """Called when a generator or a coroutine of the user's continues in the middle of a line."""
        try:
            if id(code) in self._own:
                here.reaches("" if loops.passed else self._line_of(_frame(1)))
                self._count += 1
        except Exception as error:
            self.failed(error)

    def _line_of(self, frame: FrameType | None) -> str:
        """The line of a frame, or of its nearest caller in the user's own code."""
        own = self._own
        while frame is not None and id(frame.f_code) not in own:
            frame = frame.f_back
        if frame is None:
            return here.node
        return own[id(frame.f_code)].get(frame.f_lineno) or self._number(frame.f_code, frame.f_lineno)

    def number_of(self, frames: Iterable[FrameType]) -> int:
        """The number of the line of the first of these frames that runs the user's own code; 0 = none. number_of also
        works if lines are not followed."""
        own = next((f for f in frames if self._is_own(f.f_code)), None) if self._began_ns else None
        return int(self._line_of(own)[1:]) if own is not None else 0

    def _number(self, code: CodeType, line: int) -> str:
        with self._lock:
            numbers = self._own[id(code)]
            if line not in numbers:
                self._places.append((code, line))
                numbers[line] = f"@{len(self._places)}"
            return numbers[line]

    def failed(self, error: Exception) -> None:
        """Stops following lines after an error: functions called by the interpreter and by the engine must not
        raise."""
        recorder.hook_failed(_WHAT, error)
        if self.on:
            self._follow(False)
        self.abandon()

    # Loops on the host.

    def _passes_over(self, mark: str) -> bool:
        """Whether to skip a line because it belongs to a loop that works on the host. After a skipped line, the present
        line is unknown."""
        if not loops.idle():
            self._look_again()  # one of the skipped lines may have requested memory
            return False
        if mark in loops.lines:
            loops.passed = True
            here.reaches("")
            return True
        return False

    @_or_none
    def _look_again(self, *_: Any) -> None:
        passed = self._codes_of(list(loops.lines)) if loops.passed else []
        loops.begin()
        if not self.on or self._source is None:
            return
        if not self._source.goes_on():
            self._reason = TRACED
            self._follow(False)
            self.abandon()
            steps.mark_mode()  # later requests of other threads belong to the lines that these threads are on
        elif passed:
            with self._timed():
                self._source.look_again(passed)

    def _codes_of(self, marks: Iterable[str]) -> list[CodeType]:
        """The code objects to which these lines belong."""
        return list({id(code): code for code, _ in (self._places[int(mark[1:]) - 1] for mark in marks)}.values())

    # Nodes of graphs.

    @_or_none
    def _hook(self, roots: Any) -> None:
        """Puts a hook on each node of a graph that sets the line which made the node, before the node requests memory.
        If that line is unknown, requests belong to the line that runs the graph."""
        here.runs.append([])
        if not self.on:
            return
        hooks, handles, calls = self._at_node, here.runs[-1], here.line
        with self._timed():
            with self._lock:
                tables = [table for table in self._of_step if table.step == self.step]
            for node, number in below(roots):
                line = made(number, tables, here.table) or calls
                hook = hooks.get(line) or hooks.setdefault(line, _at_node(line))
                handles.append(node.register_prehook(hook))
        self._count += len(handles)

    @_or_none
    def _run_ended(self) -> None:
        """Removes the hooks: the graph may run again, from another line."""
        for handle in here.runs.pop() if here.runs else ():
            handle.remove()
        here.table.goes_on = None
        if self.on:
            here.node = ""  # after a nested run, the next node of the outer run sets its own line
            here.reaches(self._line_of(_frame(1)))

    # Writing lines.

    @_or_none
    def _write(self) -> None:
        """Writes new lines to the journal. A line is in the journal before any event with its number."""
        if not self._began_ns:
            return
        with self._lock:
            places, self._written = self._places[self._written :], len(self._places)
        first = self._written - len(places) + 1
        rows = [
            [first + i, script_code.name_of(code.co_filename), line, getattr(code, "co_qualname", code.co_name)]
            for i, (code, line) in enumerate(places)
        ]
        recorder.frame(
            kinds.FRAME_LINES,
            {
                "lines": rows,
                "by": self._by,
                "reason": self._reason,
                "skipped": self._skipped,
                "events": self._count,
                "spent_ns": int(self._spent_ns()),
                "wall_ns": time.monotonic_ns() - self._began_ns,
            },
        )

    # The cost of following lines.

    def _spent_ns(self) -> float:
        return self._count * self._each_ns + self._other_ns

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic_ns()
        yield
        self._other_ns += time.monotonic_ns() - began

    def _measure(self) -> float:
        """Measures, in ns, the time for following a line, or for a return through calls of code that is not the user's.
        _measure follows functions of dpsight as if they were the user's."""
        codes, source = (_sample.__code__, _inner.__code__), self._source
        assert source is not None
        _sample()
        began = time.perf_counter_ns()
        _sample()
        without = time.perf_counter_ns() - began
        for code in codes:
            self._own[id(code)] = {}
            source.add(code)
        count, began = self._count, time.perf_counter_ns()
        _sample()
        taken, count = time.perf_counter_ns() - began, self._count - count
        for code in codes:
            source.drop(code)
        here.reaches(self._line_of(_frame(1)))
        return max(0.0, (taken - without) / max(1, count))


def _sample() -> None:
    for _ in range(100):
        _through(_inner, 3)


def _through(function: Callable[[], None], calls: int) -> None:
    """Calls a function in the way in which torch calls a module's."""
    if calls:
        _through(function, calls - 1)
    else:
        function()


def _inner() -> None:
    pass


def _mark_with_line(k: str) -> None:
    """Replaces, while lines are followed, the function that sets torch's metadata after each mark."""
    mine = here
    mine.k, mine.turn = k, lines.turn
    if not mine.line or mine.table.step != lines.step:  # without a line it is unknown which nodes this thread makes
        mine.table.add(private.sequence_number(), mine.line, lines.step)
    private.set_metadata(k + mine.line)


def _at_node(line: str) -> Callable[[Any], None]:
    """Returns a hook for nodes that this line made."""

    def at(_gradients: Any) -> None:
        try:
            if lines.on:
                mine = here
                mine.node = line
                mine.table.goes_on = recorder.torch.is_grad_enabled()  # the engine enables them to make a graph
                mine.reaches(line)
        except Exception as error:
            lines.failed(error)

    return at


lines = recorder.part(Lines)
here = recorder.part(ThreadLine)
