"""Tests the agent's recorder without torch."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import signal
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from decode import Journal, journals
from dpsight_kinds import K
from harness import PYTHON_PATH

sys.path.insert(0, str(PYTHON_PATH))
from dpsight import api, journal  # noqa: E402
from dpsight import recorder as floor  # noqa: E402
from dpsight.interruptions import uninterrupted  # noqa: E402
from dpsight.recorder import allocator, core, events  # noqa: E402
from dpsight.recorder.settings import Settings  # noqa: E402
from dpsight.torch_compat import private  # noqa: E402

sys.path.remove(str(PYTHON_PATH))

recorder, thread = floor.recorder, floor.thread
step_limit = sys.modules["dpsight.recorder.step_limit"]  # the module, and not the object of this name
drain_timer = sys.modules["dpsight.recorder.drain_timer"]


class Recorded(unittest.TestCase):
    """Gives each test a journal of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        private.graph_task = lambda: -1
        recorder.cuda, recorder.level = False, core.MODULES  # values from an earlier test would silence a child
        recorder.settings = Settings({"DPSIGHT_SPOOL": folder.name})
        for failed in (recorder.out, recorder._failures, recorder._reported):
            failed.clear()
        recorder.after_fork()
        self.addCleanup(recorder.after_fork)
        self.addCleanup(setattr, recorder, "settings", Settings({}))

    def journal(self) -> Journal:
        (journal,) = journals(self.folder)
        return journal

    def marks(self) -> list[tuple[int, int]]:
        """Returns the kind and the flags of each mark after the first."""
        return [(m.kind, m.flags) for m in self.journal().marks[1:]]


class TestSpans(Recorded):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(setattr, floor.codes, "step", None)
        self.addCleanup(setattr, floor.codes, "call", None)

    def step(self, inside: Any = None, *, ends: bool = False) -> None:
        """Marks a step as the hooks of an optimizer do. If the step raises, torch calls no hook at its end."""
        floor.codes.step = TestSpans.step.__code__
        thread.begin(K.OPTIMIZER_BEGIN, K.NESTED if thread.inside(K.OPTIMIZER_BEGIN) else 0, own=1)
        if inside is not None:
            inside()
        if not ends:
            raise ValueError
        thread.end(K.OPTIMIZER_BEGIN)

    def test_what_begins_closes_a_step_that_raised(self) -> None:
        with contextlib.suppress(ValueError):
            self.step()
        thread.begin(K.ZERO_GRAD_BEGIN)
        thread.end(K.ZERO_GRAD_BEGIN)
        closed = [(K.OPTIMIZER_BEGIN, 0), (K.OPTIMIZER_END, K.REPAIRED)]
        self.assertEqual(self.marks(), [*closed, (K.ZERO_GRAD_BEGIN, 0), (K.ZERO_GRAD_END, 0)])
        self.assertEqual(thread.spans, [])

    def test_a_step_that_is_alive_stays_open(self) -> None:
        self.step(lambda: thread.begin(K.ZERO_GRAD_BEGIN) and thread.end(K.ZERO_GRAD_BEGIN), ends=True)
        kinds = [kind for kind, _ in self.marks()]
        self.assertEqual(kinds, [K.OPTIMIZER_BEGIN, K.ZERO_GRAD_BEGIN, K.ZERO_GRAD_END, K.OPTIMIZER_END])

    def test_an_end_closes_what_failed_inside(self) -> None:
        def inner() -> None:
            with contextlib.suppress(ValueError):
                self.step()

        self.step(inner, ends=True)
        nested = K.NESTED
        ends = [(K.OPTIMIZER_END, K.REPAIRED | nested), (K.OPTIMIZER_END, 0)]
        self.assertEqual(self.marks(), [(K.OPTIMIZER_BEGIN, 0), (K.OPTIMIZER_BEGIN, nested), *ends])

    def test_what_begins_closes_a_call_whose_end_was_interrupted(self) -> None:
        def call() -> None:
            floor.codes.call = sys._getframe().f_code
            alive, gone = (id(sys._getframe()), 7, 0, 0), (1, 8, 0, 0)
            thread.begin(K.FORWARD_BEGIN, 0, 7)
            thread.calls += [alive, gone]
            thread.close_stale()
            self.assertEqual(thread.calls, [alive], "of two calls one frame is alive")

        call()
        thread.begin(K.BACKWARD_BEGIN)
        repaired = (K.FORWARD_END, K.REPAIRED)
        self.assertEqual(self.marks(), [(K.FORWARD_BEGIN, 0), repaired, (K.BACKWARD_BEGIN, 0)])
        self.assertEqual((thread.calls, thread.spans), ([], [K.BACKWARD_BEGIN]))

    def test_of_two_calls_the_one_that_is_gone_is_closed(self) -> None:
        """The outer call is closed if it is gone, also if a new frame has the address of the ended call's frame."""

        def call() -> None:
            floor.codes.call = sys._getframe().f_code
            here = id(sys._getframe())
            for gone, alive in (((1, 7, 0, 0), (here, 8, 0, 0)), ((here, 7, 0, 0), (here, 8, 0, 0))):
                thread.begin(K.FORWARD_BEGIN, 0, 7)
                thread.calls[:] = [gone, alive]
                thread.close_stale()
                self.assertEqual(thread.calls, [alive])
                thread.end(K.FORWARD_BEGIN)
                thread.calls.clear()

        call()
        ends = [(K.FORWARD_END, K.REPAIRED), (K.FORWARD_END, 0)]
        self.assertEqual(self.marks(), 2 * [(K.FORWARD_BEGIN, 0), *ends])

    def test_an_unmarked_update_is_marked_when_more_is(self) -> None:
        def step() -> None:
            floor.codes.step = sys._getframe().f_code
            floor.unphased.optimizer = floor.unphased.updating = 99
            floor.unphased.number, floor.unphased.updating_thread = 3, threading.get_ident()
            thread.begin(K.PHASE_BEGIN)

        step()
        marks = [(m.kind, m.a) for m in self.journal().marks[1:]]
        self.assertEqual(marks, [(K.OPTIMIZER_BEGIN, 3), (K.PHASE_BEGIN, 0)])
        self.assertEqual((floor.unphased.updating, floor.unphased.optimizer), (0, 0))

    def test_an_engines_thread_says_so_once_a_run(self) -> None:
        private.graph_task = lambda: 5
        floor.runs.latest = recorder.mark(K.USER_MARK)
        for _ in range(2):
            thread.begin(K.PHASE_BEGIN)
            thread.end(K.PHASE_BEGIN)
        engine = [(m.k, m.a) for m in self.journal().marks if m.kind == K.ENGINE]
        self.assertEqual(engine, [(3, 2)])


class TestLevels(Recorded):
    def test_as_much_as_the_process_can(self) -> None:
        for bare, cuda, wanted, level in (
            (False, False, core.TAGS, core.MODULES),
            (False, True, core.TAGS, core.TAGS),
            (True, True, core.TAGS, core.PHASES),
            (False, True, core.PHASES, core.PHASES),
            (True, True, core.COUNTERS, core.COUNTERS),
        ):
            with self.subTest(bare=bare, cuda=cuda, wanted=wanted):
                recorder.settings = Settings({"DPSIGHT_MODE": "bare" if bare else "full"})
                recorder.cuda, recorder.level = False, core.MODULES
                recorder.after_fork()
                if cuda:
                    recorder.cuda_starts(tagging=True)
                recorder.set_level(wanted)
                self.assertEqual(recorder.level, level)

    def test_cuda_raises_the_level_of_the_step_under_way(self) -> None:
        self.assertEqual(recorder.level, core.MODULES)
        recorder.cuda_starts(tagging=True)
        self.assertEqual(recorder.level, core.TAGS)

    def test_a_hook_that_fails_is_taken_out_alone(self) -> None:
        calls = []

        def hook(what: str, fatal: bool = False) -> Any:
            @core.guarded(what, fatal=fatal, otherwise=7, opens=(K.COMPILED_BEGIN,))
            def function(*, fails: bool) -> int:
                calls.append(what)
                thread.begin(K.COMPILED_BEGIN)
                if fails:
                    raise ValueError("odd")
                return thread.end(K.COMPILED_BEGIN)

            return function

        one, other = hook("one"), hook("other")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual((one(fails=True), one(fails=False)), (7, 7))
            self.assertGreater(other(fails=False), 0)
        self.assertEqual((calls, thread.spans, recorder.level), (["one", "other"], [], core.MODULES))
        span = [(K.COMPILED_BEGIN, 0), (K.COMPILED_END, 0)]
        self.assertEqual(self.marks(), 2 * span)
        self.assertEqual(said.getvalue().count("one failed, the agent removed it"), 1, said.getvalue())
        (failure,) = self.journal().json(K.FRAME_FAILURE)
        self.assertEqual((failure["hook"], failure["error"], failure["fatal"]), ("one", "ValueError: odd", False))

        with contextlib.redirect_stderr(said):
            self.assertEqual(hook("all", fatal=True)(fails=True), 7)
        self.assertIn("all failed, the agent stopped recording", said.getvalue())
        self.assertEqual((recorder.level, recorder.mark(K.USER_MARK)), (core.SILENT, 0))
        self.assertEqual([f["fatal"] for f in self.journal().json(K.FRAME_FAILURE)], [False, True])

    def test_a_hook_that_fails_on_two_threads_is_said_once(self) -> None:
        both = threading.Barrier(2)

        class BothHaveLooked(set[str]):
            def __contains__(self, what: object) -> bool:
                found = super().__contains__(what)
                with contextlib.suppress(threading.BrokenBarrierError):
                    both.wait(timeout=0.2)
                return found

        self.addCleanup(setattr, recorder, "out", recorder.out)
        recorder.out = BothHaveLooked()
        recorder.mark(K.USER_MARK)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            other = threading.Thread(target=recorder.hook_failed, args=("one", ValueError("odd")))
            other.start()
            recorder.hook_failed("one", ValueError("odd"))
            other.join()
        self.assertEqual([f["hook"] for f in self.journal().json(K.FRAME_FAILURE)], ["one"])
        self.assertEqual(said.getvalue().count("one failed"), 1, said.getvalue())

    def test_nothing_goes_on_in_silence(self) -> None:
        history: list[Any] = []
        private.record_history = lambda enabled, **_options: history.append(enabled)
        self.addCleanup(delattr, private, "record_history")
        events.silenced.subscribe(floor.drains._silenced)
        self.addCleanup(events.silenced._listeners.remove, floor.drains._silenced)
        metadata: list[str] = []
        recorder.mark(K.USER_MARK)
        recorder.set_metadata(metadata.append)
        floor.drains.record()
        floor.drains.recording = True
        k = recorder.mark(K.USER_MARK)
        with contextlib.redirect_stderr(io.StringIO()):
            recorder.failed("a drain", ValueError("odd"))
        recorder.set_metadata(metadata.append)  # as another thread that starts the recording may do
        self.assertEqual((recorder.mark(K.USER_MARK), metadata), (0, [str(k)]))
        self.assertEqual((floor.drains.recording, history), (False, ["all", None]))
        floor.drains.record()  # as another thread that drains may do
        self.assertEqual(history, ["all", None, "all", None])


class TestJournal(Recorded):
    def test_one_that_has_no_room_leaves_nothing_open(self) -> None:
        def full(*_args: int) -> None:
            raise OSError(errno.ENOSPC, "no space left")

        self.addCleanup(setattr, journal, "_allocate", journal._allocate)
        journal._allocate = full
        before = len(os.listdir("/dev/fd"))
        self.assertRaises(OSError, journal.Journal, str(self.folder))
        self.assertEqual(len(os.listdir("/dev/fd")), before)


class TestDrains(Recorded):
    def test_two_threads_drain_one_after_the_other(self) -> None:
        """Two drains do not overlap, even if each thread has first seen that no other thread drains."""
        both = threading.Barrier(2, timeout=10)
        inside, most, reasons = 0, 0, []

        class BothHaveLooked:
            def __enter__(self) -> None:
                both.wait()

            def __exit__(self, *_error: Any) -> None:
                pass

        def take(reason: str, _began: int) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.05)
            inside -= 1
            reasons.append(reason)

        recorder.cuda = True
        floor.drains._take = take
        self.addCleanup(delattr, floor.drains, "_take")
        self.addCleanup(setattr, allocator, "uninterrupted", uninterrupted)
        allocator.uninterrupted = BothHaveLooked()
        other = threading.Thread(target=floor.drains.drain_alone)
        other.start()
        floor.drains.drain("step")
        other.join()
        self.assertEqual((most, sorted(reasons)), (1, ["alone", "step"]))
        self.assertFalse(floor.drains.draining)

    def test_a_drain_inside_a_drain_is_none(self) -> None:
        reasons, answered = [], []

        def take(reason: str, _began: int) -> None:
            reasons.append(reason)
            floor.drains.drain("full")
            answered.append(floor.drains.drain_on_request())

        recorder.cuda = True
        floor.drains._take = take
        self.addCleanup(delattr, floor.drains, "_take")
        floor.drains.drain("step")
        self.assertEqual((reasons, answered), (["step"], [False]))


class TestDrainTimer(Recorded):
    """Tests that the main thread, between two lines, or the timer's thread drains if no step ends."""

    def setUp(self) -> None:
        super().setUp()
        self.drained: list[str] = []
        self.asked: list[Any] = []
        self.now = 1
        self.quiet = False
        library = SimpleNamespace(Py_AddPendingCall=lambda *what: self.asked.append(what))
        for owner, attribute, value in (
            (floor.drains, "overdue", lambda: not self.drained),
            (floor.drains, "quiet", lambda: self.quiet),
            (floor.drains, "drain", self.drained.append),
            (drain_timer, "ctypes", SimpleNamespace(pythonapi=library)),
            (drain_timer, "_now", lambda: self.now),
        ):
            self.addCleanup(setattr, owner, attribute, getattr(owner, attribute))
            setattr(owner, attribute, value)

    def test_at_a_line_of_the_scripts(self) -> None:
        drain_timer._called(None)
        self.assertEqual(self.drained, ["timer"])
        drain_timer._called(None)
        self.assertEqual(self.drained, ["timer"], "none is due any more")

    def test_not_in_the_middle_of_the_agents_work(self) -> None:
        exec("called(None)", {"__name__": "dpsight.tags", "called": drain_timer._called})
        with uninterrupted:
            drain_timer._called(None)
        self.assertEqual(self.drained, [])

    def test_alone_where_the_main_thread_does_not_answer_and_nothing_is_allocated(self) -> None:
        timer = drain_timer.DrainTimer()
        for _ in range(3):
            timer._look()
        self.assertEqual((len(self.asked), self.drained), (1, []), "it is asked once")
        self.now += drain_timer._PATIENCE_NS + 1
        timer._look()
        self.assertEqual(self.drained, [], "something is allocated")
        self.quiet = True
        timer._look()
        self.assertEqual((len(self.asked), self.drained), (1, ["alone"]))

    def test_what_fails_asks_no_more(self) -> None:
        def fails() -> bool:
            raise ValueError("odd")

        floor.drains.overdue = fails
        timer = drain_timer.DrainTimer()
        self.addCleanup(setattr, drain_timer, "_LOOK", drain_timer._LOOK)
        drain_timer._LOOK = 0.001
        with contextlib.redirect_stderr(io.StringIO()):
            watching = threading.Thread(target=timer._watch, daemon=True)
            watching.start()
            watching.join(timeout=10)
        self.assertFalse(watching.is_alive(), "it would wake up for nothing")
        self.assertEqual(recorder.level, core.MODULES)


class TestEvents(Recorded):
    def test_a_listener_that_raises_stops_nobody(self) -> None:
        def raising(*_what: Any) -> None:
            raise ValueError("odd")

        event, heard = events.Event(), []
        event.subscribe(raising)
        event.subscribe(heard.append)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            event.tell(1)
            event.tell(2)
        self.assertEqual((heard, recorder.level, recorder.tagging), ([1, 2], core.MODULES, True))
        event.forget()
        event.tell(3)
        self.assertEqual(heard, [1, 2])
        self.assertEqual(said.getvalue().count("raising failed, the agent removed it"), 1, said.getvalue())

    def test_a_signal_handlers_exception_is_the_scripts(self) -> None:
        def handler(*_args: Any) -> None:
            raise TimeoutError

        event, usual = events.Event(), signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, usual)
        event.subscribe(lambda: signal.raise_signal(signal.SIGUSR1))
        self.assertRaises(TimeoutError, event.tell)
        self.assertEqual(recorder.level, core.MODULES)


class TestForks(Recorded):
    def test_a_childs_state_is_its_own(self) -> None:
        class Part:
            def __init__(self) -> None:
                self.seen: list[int] = []

        part = recorder.part(Part)
        self.addCleanup(recorder._parts.remove, part)
        part.seen.append(1)
        recorder.mark(K.USER_MARK)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            recorder.after_fork()
            k = recorder.mark(K.USER_MARK)
            os.write(write, f"{part.seen} {k}".encode())
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(os.read(read, 100), b"[] 2")
        parent, own = sorted(journals(self.folder), key=lambda j: j.process["forked"])
        self.assertEqual((len(parent.marks), len(own.marks)), (2, 2))
        self.assertEqual(part.seen, [1])


class TestStepLimit(Recorded):
    """Tests after which step a prediction ends the script."""

    def setUp(self) -> None:
        super().setUp()
        self.held = (0, 0)
        self.now = 100.0
        for owner, attribute, value in (
            (private, "memory_stats", self._stats),
            (step_limit.devices, "seen", {0}),
            (step_limit.time, "monotonic", lambda: self.now),
            (step_limit.steps, "updates", 1),
        ):
            self.addCleanup(setattr, owner, attribute, getattr(owner, attribute, None))
            setattr(owner, attribute, value)

    def _stats(self, _device: int) -> dict[str, Any]:
        allocated, reserved = self.held
        return {"allocated_bytes": {"all": {"peak": allocated}}, "reserved_bytes": {"all": {"peak": reserved}}}

    def _limit(self, steps: str = step_limit.AUTO, **more: str) -> Any:
        recorder.settings = Settings({"DPSIGHT_STEPS": steps, **more})
        return step_limit.StepLimit()

    def test_once_nothing_rises_and_an_evaluation_was_seen(self) -> None:
        limit = self._limit()
        for number, held in enumerate([(10, 10), (12, 20), (12, 20), (12, 30), (12, 30), (12, 30), (12, 30)], 1):
            self.held = held
            limit._step_ended(number)
            self.assertFalse(limit.due, number)
        limit._evaluated = True
        limit._step_ended(8)
        self.assertEqual(limit.facts, {"step": 8, "why": "evaluated", "flat": 4, "seconds": 0})

    def test_what_an_evaluation_is(self) -> None:
        """An evaluation is a call of a trained model in eval mode and without gradients."""

        class Parameter:
            pass

        def call(parameters: list[Any], *, training: bool = False, grad: bool = False) -> bool:
            recorder.torch = SimpleNamespace(is_grad_enabled=lambda: grad)
            limit._model_called(SimpleNamespace(parameters=lambda: iter(parameters), training=training), ())
            return limit._evaluated

        limit = self._limit()
        self.addCleanup(setattr, recorder, "torch", recorder.torch)
        student, gone, others = [Parameter()], [Parameter()], [Parameter() for _ in range(100)]
        self.assertFalse(call(student, training=True, grad=True))
        self.assertFalse(call(gone, training=True, grad=True))
        self.assertFalse(call(student, training=True), "in training mode")
        self.assertFalse(call([]), "a module without parameters")
        self.assertFalse(any(call([teacher]) for teacher in others), "a teacher")
        address = id(gone.pop())
        others += [Parameter() for _ in range(100)]
        self.assertIn(address, map(id, others))
        self.assertFalse(any(call([teacher]) for teacher in others), "a teacher at an address that was another's")
        self.assertTrue(call(student))

    def test_without_an_evaluation_after_a_while(self) -> None:
        limit = self._limit()
        for number in range(1, 100):
            limit._step_ended(number)
            self.assertFalse(limit.due)
        self.now += step_limit.LONG_S
        limit._step_ended(100)
        self.assertEqual(limit.facts, {"step": 100, "why": "long", "flat": 99, "seconds": 60})

    def test_a_step_that_was_asked_for(self) -> None:
        limit = self._limit("3")
        for number, due in ((1, False), (2, False), (3, True)):
            limit._step_ended(number)
            self.assertEqual(limit.due, due)
        for raised in range(2):  # the script may catch the exception
            with self.assertRaises(step_limit.Ended):
                limit.leave()
            self.assertFalse(limit.due)
            limit._step_ended(4 + raised)

    def test_ranks_end_after_the_same_step(self) -> None:
        agreed = {"DPSIGHT_RANKS": "2", "DPSIGHT_AGREEMENT": str(self.folder / "agreement")}
        first, second = (self._limit(**agreed) for _ in range(2))
        ended = {}
        self.addCleanup(setattr, recorder, "pid", recorder.pid)
        # The second rank is behind the first one, and finds a constant peak later.
        for pid, limit, numbers in ((1, first, range(1, 9)), (2, second, range(1, 12)), (1, first, range(9, 12))):
            recorder.pid = pid
            for number in numbers:
                limit._evaluated = True
                if pid not in ended:
                    limit._step_ended(number)
                    if limit.due:
                        ended[pid] = number
        self.assertEqual(ended, {1: 9, 2: 9})


class TestRaisingLater(unittest.TestCase):
    """Tests raising_later: a signal's handler runs only after code that must not raise, which Python itself calls."""

    def test_handler_runs_at_the_next_line(self) -> None:
        inside, after = False, False
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        try:
            with uninterrupted.raising_later():
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
                inside = True
            for _ in range(1000):
                pass
        except KeyboardInterrupt:
            after = True
        self.assertTrue(inside and after)
        self.assertFalse(uninterrupted.entered())
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)


class TestPhase(unittest.TestCase):
    """Tests that @dpsight.phase covers a function's own code, and not other code that runs while the function waits."""

    def setUp(self) -> None:
        self.said: list[str] = []
        enter = unittest.mock.patch.object(api.phase, "__enter__", lambda phase: self.said.append(f"+{phase.name}"))
        leave = unittest.mock.patch.object(api.phase, "__exit__", lambda phase, *_: self.said.append(f"-{phase.name}"))
        for patch in (enter, leave):
            patch.start()
            self.addCleanup(patch.stop)

    def test_a_function(self) -> None:
        @api.phase("f")
        def f(x: int) -> int:
            self.said.append("in")
            return x + 1

        self.assertEqual((f(1), self.said, f.__name__), (2, ["+f", "in", "-f"], "f"))

    def test_a_generator(self) -> None:
        @api.phase("g")
        def g() -> Generator[int, Any, str]:
            try:
                self.said.append(str((yield 1)))
                yield 2
            except KeyError:
                self.said.append("caught")
                yield 3
            finally:
                self.said.append("end")
            return "done"

        body = g()
        self.assertEqual((next(body), self.said), (1, ["+g", "-g"]))
        self.assertEqual((body.send("sent"), body.throw(KeyError())), (2, 3))
        with self.assertRaises(StopIteration) as stop:
            next(body)
        self.assertEqual(stop.exception.value, "done")
        self.assertEqual(self.said[2:], ["+g", "sent", "-g", "+g", "caught", "-g", "+g", "end", "-g"])
        self.said.clear()
        closed = g()
        next(closed)
        closed.close()
        self.assertEqual(self.said, ["+g", "-g", "+g", "end", "-g"])

    def test_a_coroutine(self) -> None:
        @api.phase("c")
        async def work(n: int) -> int:
            self.said.append(f"begin {n}")
            await asyncio.sleep(0)
            self.said.append(f"end {n}")
            return n

        async def both() -> list[int]:
            return await asyncio.gather(work(1), work(2))

        self.assertEqual(asyncio.run(both()), [1, 2])
        own = [["+c", f"{at} {n}", "-c"] for at in ("begin", "end") for n in (1, 2)]
        self.assertEqual(self.said, [said for part in own for said in part])

    def test_an_asynchronous_generator(self) -> None:
        async def numbers() -> AsyncGenerator[int, None]:
            yield 1

        with self.assertRaisesRegex(TypeError, "cannot decorate an async generator"):
            api.phase("a")(numbers)


if __name__ == "__main__":
    unittest.main()
