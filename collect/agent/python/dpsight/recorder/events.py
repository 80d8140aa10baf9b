"""Events that hooks report in addition to marks, for listeners that then look at tensors (taggers/), and events of
the recorder itself. Hooks do not know the listeners. Listeners are called in the order in which agent.py subscribes
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Event:
    """An event that may happen many times. Listeners subscribe to it."""

    __slots__ = ("_listeners",)

    failed: ClassVar[Callable[[Callable[..., Any], Exception], None]]  # called when a listener fails

    def __init__(self) -> None:
        self._listeners: list[Callable[..., Any]] = []

    def subscribe(self, listener: Callable[..., Any]) -> None:
        """Calls listener whenever the event happens."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[..., Any]) -> None:
        """Stops calling listener."""
        self._listeners = [other for other in self._listeners if other is not listener]

    def forget(self) -> None:
        """Removes all listeners."""
        self._listeners.clear()

    def tell(self, *what: Any) -> None:
        """Calls the listeners, since the event has happened. A listener that fails stops neither later listeners nor
        the reporting hook. The failed listener is not called again."""
        for listener in self._listeners:
            try:
                listener(*what)
            except Exception as error:
                self.failed(listener, error)
                self._listeners = [other for other in self._listeners if other is not listener]


# Events of the recorder.
journal_opened = Event()  # () The first mark has been written.
cuda_starts = Event()  # (native) CUDA was initialised, its mark is not written yet; native: with torch's own allocator.
cuda_ready = Event()  # () The first checkpoint is written.
drain_begins = Event()  # () The mark of a drain is written: buffered tags go to the journal.
drain_alone = Event()  # () A drain begins on a thread of the recorder's own: nothing may be asked of the device.
counters_written = Event()  # () A drain's events and counters are written.
devices_seen = Event()  # (ordinals) These devices are in use for the first time.
hook_failed = Event()  # (kinds) A hook that opens spans of these kinds has failed, and will close none of them.
silenced = Event()  # () Recording has ended: this process is not recorded, or its recording has failed.
window_opened = Event()  # () Recording has begun again: earlier tags are not in the journal.

# Events of steps.
step_ended = Event()  # (number) A step's last mark is written; number: how many steps have ended.
step_begins = Event()  # (number, recorded) The next step begins soon, after drains; recorded: this step or the last is.

# Events of forward; not in steps without phases.
model_called = Event()  # (module, args) The outermost call has begun, not in backward.
model_returned = Event()  # (kwargs, out) The outermost call has ended; out is None if it raised.
module_called = Event()  # (args, kwargs, serial) A call inside another has begun, at level MODULES or above.
module_returned = Event()  # (out, call, calls) A call has ended, at level MODULES or above; calls: the calls around it.

# Events of the script.
line_reached = Event()  # () A line of the user's own code, if lines are followed; not every one: see script_lines.py.

# Events of backward.
run_begins = Event()  # (roots) A run of backward, possibly nested or of torch.func, is about to be marked.
run_ended = Event()  # () A run of backward, possibly nested, has ended; its mark is not written yet.
backward_begins = Event()  # (roots) An outermost run of backward is about to be marked, at level TAGS.
backward_ended = Event()  # (released) An outermost run has ended, at level TAGS; released: its whole graph.
graph_made = Event()  # (roots, gradients) An outermost run has made its gradients differentiable, at level TAGS.
transform_runs = Event()  # (roots) A run inside torch.func is about to be marked, at level TAGS.
transform_ran = Event()  # (inputs, gradients) A run inside torch.func has made the inputs' gradients, at level TAGS.
recompute_ended = Event()  # (roots) A reentrant checkpoint has recomputed these tensors, at level TAGS.
block_recomputed = Event()  # (tensors) A non-reentrant checkpoint has recomputed; backward holds these, no node does.

# Events of DDP.
buckets_due = Event()  # (reducer) The reducer may be about to make its buckets again.
buckets_made = Event()  # (reducer) The reducer has made its buckets again.

# Events of optimizers.
update_begins = Event()  # (optimizer) An update is about to be made, at level TAGS.
update_ended = Event()  # (optimizer) An update has ended, at level TAGS; its mark is not written yet.
compiled_update_begins = Event()  # (optimizer) A compiled step begins. torch runs none of its hooks around it.
compiled_update_ended = Event()  # (optimizer) A compiled step has ended.

# Events of libraries of differential privacy and of torch's expanded weights; all but the first two at level TAGS.
dp_imported = Event()  # (adapter) A library was imported.
dp_configured = Event()  # (facts) An optimizer or an engine was made, with these facts about privacy.
dp_phase_begins = Event()  # (parameters, phase) "clip", "accumulate" or "noise" has begun for these parameters.
dp_phase_ended = Event()  # (parameters, phase) The end of such a phase is about to be marked.
dp_clips = Event()  # (parameter) Clipping asks for the parameter's per-sample gradients.
dp_noise_made = Event()  # (noise) Noise was made, for one parameter after another.
activations_kept = Event()  # (module) A forward hook has kept the inputs of a layer; in a bare evaluation as well.
sampler_begins = Event()  # (module) Norms or per-sample gradients of a layer are about to be computed.
sampler_ended = Event()  # (module) Norms or per-sample gradients of the layer have been computed.
sample_made = Event()  # (parameter, tensor) Per-sample gradients of a parameter, which may be copied to another place.
sample_set = Event()  # (parameter) Per-sample gradients are attached to the parameter now.

# Events of ranks, at level TAGS.
group_gathered = Event()  # (group) FSDP2 has gathered a group's parameters.
group_scattered = Event()  # (group) FSDP2 has scattered a group's gradients.

# Events of failed requests.
request_failed = Event()  # () The error of a request that failed is about to reach the script.

# Events of the process's end.
uncaught = Event()  # (traceback) An exception is about to end the process; its frame is not written.
exit_begins = Event()  # () The process is about to end. The last drain has not been made.
process_ends = Event()  # () The last drain of the process is done.


def forget_listeners() -> None:
    """Removes the listeners of all events."""
    for event in globals().values():
        if isinstance(event, Event):
            event.forget()
