"""What all parts of the agent share: a few flags that hooks test first, and what each thread is inside of."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from dpsight.interruptions import by_script


class State:
    """The agent's flags. Plain attributes: hooks read them millions of times."""

    __slots__ = (
        "active",
        "alone",
        "bare",
        "calling",
        "cuda",
        "dead",
        "forks",
        "instrumented",
        "passed",
        "pid",
        "record_steps",
        "recording",
        "source",
        "spool",
        "stack_steps",
        "stacks",
        "tagging",
        "timing",
        "torch",
        "trainers",
        "unphased",
        "updater",
        "updating",
        "warmup",
        "window_steps",
    )

    def __init__(self) -> None:
        env = os.environ
        self.spool = env.get("DPSIGHT_SPOOL", "")
        self.bare = env.get("DPSIGHT_MODE") == "bare"
        self.source = env.get("DPSIGHT_SOURCE") or "measured"
        self.warmup = number(env.get("DPSIGHT_WARMUP"), 3)
        self.record_steps = number(env.get("DPSIGHT_RECORD_STEPS"), 100)
        self.window_steps = number(env.get("DPSIGHT_WINDOW_STEPS"), 10)  # of each later window; 0 = there is none
        self.stacks = env.get("DPSIGHT_STACKS") == "python"
        self.stack_steps = number(env.get("DPSIGHT_STACK_STEPS"), 3) if self.stacks else 0
        self.torch: Any = None
        self.dead = False  # nothing is written any more
        self.cuda = False  # CUDA is initialised
        self.recording = False  # the allocator's history is on
        self.instrumented = not self.bare  # this step has module marks, tags and Opacus' insides
        self.tagging = not self.bare  # tags are possible at all
        self.timing = False  # CUDA events are recorded
        self.active = False  # something trained since the last step's end
        self.trainers = 0  # threads that have run a backward
        self.unphased = 0  # the thread whose step has no phases (unphased.py); 0 = none: the step has
        self.alone = 0  # id() of the optimizer that alone updates, in such a step with one mark; 0 = updates have two
        self.updating = 0  # id() of the optimizer whose update began without a mark; stays if it raised, until the next
        self.updater = 0  # the thread in which it began
        self.calling = False  # that thread is inside a module's call, which has no marks
        self.passed = 0  # how far that step is; 0 = nowhere
        self.forks = 0
        self.pid = os.getpid()


def number(text: str | None, default: int) -> int:
    """The whole number that text holds, or default."""
    try:
        return max(0, int(text or ""))
    except ValueError:
        return default


# How far a step without phases is, in state.passed.
CALLED = 1  # a module was called last
RAN = 2  # backward ran last

Call = tuple[int, int, int, int]
"""A module's call: its id(), its number, the call's serial, the sequence number of the first node made in it."""


Calm = Callable[[Any], bool]
"""Of a device: whether no other thread can be writing gradients there, or letting go of graphs."""


class Trainer:
    """A thread that has run a backward of its own: an object that goes when the thread does."""

    __slots__ = ("__weakref__",)


class Local(threading.local):
    """What a thread is inside of."""

    def __init__(self) -> None:
        self.calls: list[Call] = []  # of modules
        self.open: list[tuple[int, int]] = []  # modules that backward is inside of: serial, number
        self.arrived = 0  # mark at which the latest backward run that this thread works on began
        self.backward = 0
        self.optimizer = 0
        self.dp_step = 0
        self.scaler = 0
        self.updated = 0  # key of the optimizer that stepped inside the enclosing DP step or scaler; 0 = none
        self.trains = False  # it has run a backward
        self.trainer: Trainer | None = None  # it has run one that is inside no other
        self.recompute: list[str] = []
        self.sampler = 0
        self.phases = 0  # of the script
        self.stage = ""  # the stage of the set-up
        self.stage_number = 0  # of its name, once it is marked


state = State()
local = Local()


def after_fork() -> None:
    """A child starts anew. One whose parent had CUDA initialised cannot use it, so it stays silent."""
    state.forks += 1
    state.trainers = state.unphased = state.passed = 0
    state.alone = state.updating = state.updater = 0
    state.calling = False
    state.pid = os.getpid()
    state.dead = state.dead or state.cuda
    state.cuda = state.recording = state.timing = state.active = False
    state.instrumented = state.tagging = not state.bare
    local.__init__()  # type: ignore[misc]


_reported: set[str] = set()


def failed(where: str, error: BaseException, fatal: bool = True) -> None:
    """Says once what went wrong inside the agent, which then goes quiet: all of it, or only its tags."""
    if by_script(error):
        raise error
    if fatal:
        state.dead = True
    state.tagging = state.instrumented = False
    _say(where, "the agent records no more" if fatal else "the agent tags no more", error)


def spared(where: str, error: BaseException) -> None:
    """Says once that something failed which the rest goes on without."""
    if by_script(error):
        raise error
    _say(where, "the agent goes on without", error)


def _say(where: str, what: str, error: BaseException) -> None:
    if where not in _reported:
        _reported.add(where)
        line = error.__traceback__.tb_lineno if error.__traceback__ else 0
        sys.stderr.write(f"dpsight: {where} failed, {what}: {type(error).__name__}: {error} (line {line})\n")
