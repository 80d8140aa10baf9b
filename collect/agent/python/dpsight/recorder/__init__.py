"""The recorder and its parts are the lowest layer of the agent. Hooks and taggers report to the recorder, and do not
know one another.

core.py            the recorder: journal, marks, level, failing hooks, forks
events.py          the events of hooks and of the recorder, for listeners
spans.py           a thread's recorder: its open spans, and the closing of stale ones
policy.py          where steps end, and the level of each
boundary.py        which optimizer's update ends a step
windows.py         the steps whose allocator events are recorded
unphased_steps.py  steps at the lowest level
step_limit.py      after which step a prediction ends the script
timing.py          times between marks
allocator.py       the allocator's history, with counters.py and freeze.py
hostmemory.py      host memory of the process
drain_timer.py     drains by the clock if no step ends
"""

from dpsight.recorder import events
from dpsight.recorder.allocator import drains
from dpsight.recorder.core import COUNTERS, MODULES, PHASES, SILENT, TAGS, guarded, recorder
from dpsight.recorder.drain_timer import timer
from dpsight.recorder.freeze import freeze_threads
from dpsight.recorder.hostmemory import host_memory
from dpsight.recorder.policy import steps
from dpsight.recorder.spans import Call, calling, codes, in_backward, runs, thread
from dpsight.recorder.step_limit import step_limit
from dpsight.recorder.timing import stamps
from dpsight.recorder.unphased_steps import CALLED, unphased

__all__ = [
    "CALLED",
    "COUNTERS",
    "MODULES",
    "PHASES",
    "SILENT",
    "TAGS",
    "Call",
    "calling",
    "codes",
    "drains",
    "events",
    "freeze_threads",
    "host_memory",
    "guarded",
    "in_backward",
    "recorder",
    "runs",
    "stamps",
    "step_limit",
    "steps",
    "thread",
    "timer",
    "unphased",
]
