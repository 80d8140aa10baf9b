"""Checks that line events come in order: from sys.monitoring, or before Python 3.12 from the phantom GPU's tracer, if
it is preloaded. monitoring_test.go runs this script under each Python that it finds. It needs no torch."""

from __future__ import annotations

import asyncio
import sys
from types import CodeType
from typing import Any

from dpsight.lines import sources

SCRIPT = """
class Chunks:
    left = 2

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration  # raises
        return ask()  # chunk


def joined():
    return ask(list(Chunks()))  # joins


def lazily():
    parts = (ask(i) for i in range(3))  # part
    for part in parts:
        ask(part)  # consumes


async def waits(event):
    return ask(await event)  # awaits


def catching():
    try:
        yield 1
    except ValueError:
        ask()  # thrown


def thrown():
    generator = catching()
    next(generator)
    try:
        generator.throw(ValueError())  # throws
    except StopIteration:
        pass


def enclosing():
    with Asks(): yield 1  # encloses


def thrown_out():
    generator = enclosing()
    next(generator)
    try:
        generator.throw(ValueError())  # throws
    except ValueError:
        pass


def yielding():
    yield 1  # yields


def pulls():
    generator = yielding()
    ask(next(generator))  # pulls


def returning():
    return 1  # returns


def calls():
    ask(returning())  # calls


def again(times):
    for i in range(times):  # loop
        x = i  # passed over
    ask()  # after
"""

asked: list[str] = []  # for each call of ask(), the comment of the line that the agent has for it
line = 0
passing: set[int] = set()
UNKNOWN = "no line"
texts = [UNKNOWN, *(text.rpartition("#")[2].strip() for text in SCRIPT.splitlines())]


def ask(*_: Any) -> None:
    asked.append(texts[line])


def reaches(number: int | None) -> None:
    global line
    line = number or 0


def caller(frame: Any) -> int | None:
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None


def reached(_code: CodeType, number: int) -> Any:
    reaches(number)
    return source.PASS_OVER if number in passing else None


def left(code: CodeType, *_: Any) -> None:
    if code in codes:
        reaches(caller(sys._getframe(1).f_back))


def resumed(code: CodeType, *_: Any) -> None:
    if code in codes:
        reaches(caller(sys._getframe(1)))


def is_own(code: CodeType) -> bool:
    if code.co_filename != "script.py":
        return False
    if code not in codes:
        codes.append(code)
        source.add(code)
    return True


def expect(what: str, want: list[str]) -> None:
    assert asked == want, f"{what}: {asked}, want {want}"
    asked.clear()


async def pending() -> None:
    await asyncio.sleep(0)


class Asks:
    """A context manager that calls ask() in code outside the script."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        ask()


codes: list[CodeType] = []
monitoring = getattr(sys, "monitoring", None)
if monitoring is not None:
    monitoring.use_tool_id(4, "debugger")
found, reason = sources.find_source(reached, left, resumed, is_own)
assert found is not None, reason
source = found
source.follow(codes)
names: dict[str, Any] = {"ask": ask, "Asks": Asks}
exec(compile(SCRIPT, "script.py", "exec"), names)

names["joined"]()
expect("an exception that C code swallows", ["chunk", "chunk", "joins"])
names["lazily"]()
expect("a generator that goes on", ["part", "consumes"] * 3)
asyncio.run(names["waits"](pending()))
expect("a coroutine that goes on", ["awaits"])
names["thrown"]()
expect("an exception that is thrown into a generator", ["thrown"])
names["thrown_out"]()
expect("an exception that is thrown into the middle of a line", ["encloses"])
names["pulls"]()
expect("a generator that yields", ["pulls"])
names["calls"]()
expect("a function that returns", ["calls"])

passing.update(i for i, text in enumerate(texts) if text in ("loop", "passed over", "after"))
names["again"](2)
line = 0
names["again"](2)
expect("a line that is passed over", ["after", UNKNOWN])
passing.clear()
source.look_again(codes)
names["again"](1)
expect("a line that was passed over", ["after"])

source.rest(codes)
line = 0
names["joined"]()
expect("nothing is followed", [UNKNOWN] * 3)
source.end()
if monitoring is not None:
    assert [monitoring.get_tool(t) for t in (4, 3)] == ["debugger", None]
    monitoring.use_tool_id(3, "another debugger")
    assert sources.find_source(reached, left, resumed, is_own) == (None, "other tools hold sys.monitoring")
    source.end()
    assert [monitoring.get_tool(t) for t in (4, 3)] == ["debugger", "another debugger"]
