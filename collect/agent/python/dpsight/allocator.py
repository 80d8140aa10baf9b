"""The allocator's own history: started before the first allocation, drained between steps, each drain with torch's
counters beside it, so that a lost event is seen."""

from __future__ import annotations

import gc
import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpsight import environment, kinds, prediction, tags, timing
from dpsight.interruptions import uninterrupted
from dpsight.marks import frame, mark, open_journal, set_metadata
from dpsight.state import failed, state
from dpsight.torch_compat import private

# Ring overflow is silent. Host memory is taken only as events come.
MAX_ENTRIES = 10_000_000
_ALWAYS = 12  # the first steps are drained one by one: small losses if the run dies early
# Between steps the clock alone is asked: the counters would take a tenth of a millisecond. In a long step check() does.
_EVERY_NS = 250_000_000
# A drain makes a dictionary of each event: beyond this it would take gigabytes.
_EMERGENCY = 500_000
_LOOK_EVERY = 64  # outermost calls between two looks at the counter
# For how long a moment is looked for in which no thread allocates.
_PATIENCE_NS = 1_000_000_000
_LONG = 60.0  # s, between two changes of thread that nobody asked for
_LOOKS = 3  # at the counters, a few microseconds apart, that find nothing

KEYS = [
    (f"{group}.all.{part}", group, part)
    for group, parts in (
        ("allocated_bytes", ("current", "peak", "allocated", "freed")),
        ("reserved_bytes", ("current", "peak")),
        ("active_bytes", ("current", "peak")),
        ("requested_bytes", ("current", "peak", "allocated", "freed")),
        ("allocation", ("current", "allocated", "freed")),
        ("active", ("current", "allocated", "freed")),
        ("segment", ("current",)),
    )
    for part in parts
]
COUNTERS = ("num_alloc_retries", "num_ooms")
# What goes up with every event but a snapshot's.
_ACTS = (
    ("allocation", "allocated"),
    ("allocation", "freed"),
    ("active", "freed"),
    ("segment", "allocated"),
    ("segment", "freed"),
)

# Of drains without events, but with the list to go on from: after steps that nobody recorded, and after a lost event.
_WINDOW = "window"
_LOST = "lost"
_LISTS = (_WINDOW, _LOST)

drains = 0
drain_ns = 0
draining = False
_stacks = False  # Python stacks are being recorded
user_options: dict[str, Any] | None = None  # the script records for itself, with these
user_traces: list[list[Any]] = []  # what we drained since: its own snapshot must hold it
_last_ns = 0
_last_allocations = 0
_looks = 0
_seen: set[int] = set()  # devices that were ever used
_still: list[None] = []  # one for each still() that a thread is in
_usual = (0.005, True)  # what the script had before: how often threads change, and whether garbage is collected
_at_drain: dict[int, tuple[int, ...]] = {}  # how often memory was taken and given back until the last drain, by device
_identified: set[int] = set()  # those of which the journal has the UUID


def install() -> None:
    """Has recording start with CUDA itself. Starting it now would initialise CUDA."""
    private.lazy_call(_ready)


def _ready() -> None:
    try:
        if not state.dead and open_journal():
            with uninterrupted:
                _start()
    except Exception as error:
        failed("starting the recording", error)


def _start() -> None:
    global _last_ns, _stacks
    torch = state.torch
    state.cuda = True
    native = torch.cuda.memory.get_allocator_backend() == "native"
    if not native:
        state.tagging = state.instrumented = False  # nothing to join tags with
    if native and not state.bare:
        _stacks = state.stack_steps > 0
        record()
        state.recording = True
        set_metadata(private.set_metadata)
    if native:
        from dpsight import endings

        private.attach_oom_observer(endings.out_of_memory)
    if state.source == "measured":
        timing.begin()
    k = timing.stamp(mark(kinds.CUDA_READY))
    _checkpoint(k, "start", [], 0)
    _last_ns = time.monotonic_ns()
    environment.write()


def record(clear: bool = False) -> None:
    """Turns history on, or empties it. Stacks, of allocations only, in the steps they were asked for: they make a drain
    a hundred times as long."""
    context = "alloc" if _stacks else None
    options = {"context": context, "stacks": "python", **(user_options or {}), "max_entries": MAX_ENTRIES}
    private.record_history("all", clear_history=clear, **options)


def stop_recording(for_good: bool) -> None:
    """Beyond a window of recorded steps only counters are kept."""
    with uninterrupted:
        drain("step")
        if state.recording:
            state.recording = False
            if for_good:
                set_metadata(None)
            if user_options is None:
                private.record_history(None)


def can_resume() -> bool:
    """Whether recording can begin once more. Not beside a script that records for itself: its history would go."""
    return state.cuda and state.tagging and user_options is None


def resume_recording() -> None:
    """Opens another window. Its first drain holds no events, but the allocator's own list of blocks: what replay goes
    on from. The one before it gives the counters up to here, and says that until then nothing was recorded."""
    with uninterrupted:
        drain("step")
        record(clear=True)
        state.recording = True
        drain(_WINDOW)


_LISTED = 8  # failures outside windows that have a list of blocks each; then every power of two
_failures = 0


def lists_failure() -> bool:
    """Whether a request that failed while nothing is recorded has the allocator's list of blocks taken. A script may
    fail, and go on, any number of times."""
    global _failures
    if state.recording or draining or not can_resume() or state.torch.cuda.is_current_stream_capturing():
        return False
    _failures += 1
    return _failures <= _LISTED or _failures & (_failures - 1) == 0


def end_moment() -> None:
    """Ends a window that was opened for one moment."""
    with uninterrupted:
        drain("oom")
        state.recording = False
        private.record_history(None)


def _allocations() -> int:
    stats = private.memory_stats(private.current_device())
    return stats["allocation"]["all"]["allocated"]


def between_steps(finished: int, window: Any) -> bool:
    """Drains if enough has come together, and opens and closes windows. finished: steps so far. Returns whether
    recording has begun again."""
    global _stacks
    if not state.cuda or state.dead:
        return False
    if state.recording and not window.holds(finished):
        _stacks = False
        stop_recording(for_good=not window.again())
    elif finished and finished == window.begin:
        resume_recording()
        return True
    elif finished <= _ALWAYS or _stacks or time.monotonic_ns() >= due_ns():
        _stacks = _stacks and finished < state.stack_steps
        drain("step")
    return False


def due_ns() -> int:
    """When the next drain between steps is due, on the monotonic clock."""
    return _last_ns + _EVERY_NS


def rests() -> bool:
    """Whether between_steps has nothing to do, unless a window begins."""
    return not state.recording and time.monotonic_ns() < due_ns()


def check() -> None:
    """Drains within a step only if its events would get out of hand."""
    global _looks
    _looks += 1
    if _looks % _LOOK_EVERY == 0 and state.recording and _allocations() - _last_allocations > _EMERGENCY:
        drain("full")


def drain_on_request() -> bool:
    """Drains for the collector; False in the middle of another drain."""
    if draining:
        return False
    drain("request")
    return True


def drain(reason: str) -> None:
    """Takes the events since the last drain, and torch's counters at the same moment."""
    if draining or not state.cuda or state.dead:
        return
    with uninterrupted:  # while the ring is empty and the frame unwritten, the events are nowhere
        if not _drain(reason) and not state.dead:
            _drain(_LOST)


def _drain(reason: str) -> bool:
    """Returns False if an event was lost: torch has no call that takes the events and empties the ring at once, and
    threads that run without the interpreter's lock (autograd's, a process group's) may allocate or free in between."""
    global drains, drain_ns, draining, _last_ns, _last_allocations
    draining = True
    complete = True
    began = time.monotonic_ns()
    try:
        if state.torch.cuda.is_current_stream_capturing():
            return True
        drains += 1
        k = mark(kinds.DRAIN_BEGIN, 0, drains)
        tags.flush()
        timing.flush()
        if state.recording:
            with still():
                snapshot, stats = _taken(reason in _LISTS)
                complete = reason in _LISTS or _emptied()
            frame(kinds.FRAME_ALLOCATOR, pickle.dumps(snapshot, protocol=4))
            _keep_for_user(snapshot["device_traces"])
        else:
            stats = _stats([])
        _write(k, reason, stats, began)
        prediction.write()
        if state.recording:
            _last_allocations = _allocations()
        mark(kinds.DRAIN_END, 0, drains)
    except Exception as error:
        failed("a drain", error)
    finally:
        draining = False
        _last_ns = time.monotonic_ns()
        drain_ns += _last_ns - began
    return complete


def go_on() -> None:
    """Empties the ring where it was drained a moment ago and a script's own call came between."""
    with uninterrupted:
        if not _emptied():
            _drain(_LOST)


@contextmanager
def still() -> Iterator[None]:
    """No other thread is given the interpreter's lock that does not find it free: most then wait at their next line.
    And no garbage is collected: tensors may be among it."""
    global _usual
    usual = sys.getswitchinterval(), gc.isenabled()
    if not _still and usual[0] < _LONG:  # threads may be in here together: the last one out gives back what was before
        _usual = usual
    _still.append(None)
    sys.setswitchinterval(_LONG)
    gc.disable()
    try:
        yield
    finally:
        _still.pop()
        if not _still:
            _unstill()


def _unstill() -> None:
    sys.setswitchinterval(_usual[0])
    if _usual[1]:
        gc.enable()


def _taken(empty: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A snapshot, and torch's counters of that same moment: none moved while it was taken. Nothing is lost by another
    try, since the ring is emptied later. empty: the list of blocks is wanted, of a moment from which on the ring has
    every event. Out of patience it returns what there is, and the counters tell that events are missing."""
    global _at_drain
    until = time.monotonic_ns() + _PATIENCE_NS
    while True:
        before = _settled(until)
        snapshot = private.memory_snapshot(None)
        traces = snapshot["device_traces"]
        stats = _stats([len(t) for t in traces])
        _at_drain = _acts()
        same = _none_since(before, _at_drain)
        if empty and any(event["action"] != "snapshot" for trace in traces for event in trace):
            record(clear=True)
            same = False
        if same or time.monotonic_ns() > until:
            return snapshot, stats


def _settled(until: int) -> dict[int, tuple[int, ...]]:
    """Waits until nothing is taken or given back any more, and returns the counters: a snapshot that turns out to be of
    no such moment was made for nothing, at a microsecond an event."""
    acts, equal = _acts(), 0
    while equal < _LOOKS and time.monotonic_ns() < until:
        acts, previous = _acts(), acts
        equal = equal + 1 if acts == previous else 0
    return acts


def _emptied() -> bool:
    """Empties the ring, and returns whether that was everything since the counters were last read."""
    record(clear=True)
    return _none_since(_at_drain, _acts())


def _acts() -> dict[int, tuple[int, ...]]:
    """How often the memory of each device in use was taken and given back so far."""
    found = {}
    for device in {*_seen, private.current_device()}:
        nested = private.memory_stats(device)
        found[device] = tuple(nested[group]["all"][part] for group, part in _ACTS)
    return found


def _none_since(before: dict[int, tuple[int, ...]], after: dict[int, tuple[int, ...]]) -> bool:
    never = (0,) * len(_ACTS)
    return all(before.get(device, never) == acts for device, acts in after.items())


def _checkpoint(k: int, reason: str, events: list[int], began: int) -> None:
    _write(k, reason, _stats(events), began or time.monotonic_ns())


def _write(k: int, reason: str, devices: list[dict[str, Any]], began: int) -> None:
    frame(
        kinds.FRAME_CHECKPOINT,
        {
            "drain": drains,
            "k": k,
            "reason": reason,
            "time_ns": time.time_ns(),
            "drain_ns": time.monotonic_ns() - began,
            "recording": state.recording,
            "devices": devices,
        },
    )
    if len(_identified) < len(_seen):
        environment.write_devices(sorted(_seen - _identified))
        _identified.update(_seen)


def _stats(events: list[int]) -> list[dict[str, Any]]:
    """The counters of every device that was used; at the start, and where no events tell which were, of all."""
    out = []
    for device in range(state.torch.cuda.device_count()):
        n = events[device] if device < len(events) else 0
        if drains and state.recording and not n and device not in _seen and device != private.current_device():
            continue
        nested = private.memory_stats(device)
        if nested["allocation"]["all"]["allocated"]:  # an event tells little: a snapshot is one, on every device
            _seen.add(device)
        flat = {key: nested[group]["all"][part] for key, group, part in KEYS}
        flat.update({key: nested[key] for key in COUNTERS})
        out.append({"device": device, "events": n, "stats": flat})
    return out


def _keep_for_user(traces: list[Any]) -> None:
    """Keeps what a script that records for itself would find in its own snapshot."""
    if user_options is None:
        return
    most = user_options.get("max_entries", MAX_ENTRIES)
    for i, trace in enumerate(traces):
        while len(user_traces) <= i:
            user_traces.append([])
        kept = user_traces[i]
        kept.extend(trace)
        del kept[: max(0, len(kept) - most)]


def after_fork() -> None:
    """Counts anew; whether CUDA can be used at all is the parent's doing."""
    global drains, drain_ns, draining, _failures, _last_allocations, _looks, _stacks, user_options
    drains = drain_ns = _failures = _last_allocations = _looks = 0
    draining = _stacks = False
    user_options = None
    user_traces.clear()
    if _still:  # the thread that would have given it back is the parent's
        _unstill()
    _still.clear()
    _at_drain.clear()
    _seen.clear()
    _identified.clear()
