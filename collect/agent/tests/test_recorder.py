"""The recorder by itself, without torch."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any

from decode import Journal, journals
from dpsight_kinds import K
from harness import PYTHON_PATH

sys.path.insert(0, str(PYTHON_PATH))
from dpsight import recorder as floor  # noqa: E402
from dpsight.recorder import core, events  # noqa: E402
from dpsight.recorder.settings import Settings  # noqa: E402
from dpsight.torch_compat import private  # noqa: E402

sys.path.remove(str(PYTHON_PATH))

recorder, thread = floor.recorder, floor.thread


class Recorded(unittest.TestCase):
    """Each test has a journal of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        private.graph_task = lambda: -1
        recorder.cuda, recorder.level = False, core.MODULES  # what an earlier test has left would silence a child
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
        """Kind and flags of each, but for the first."""
        return [(m.kind, m.flags) for m in self.journal().marks[1:]]


class TestSpans(Recorded):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(setattr, floor.codes, "step", None)
        self.addCleanup(setattr, floor.codes, "call", None)

    def step(self, inside: Any = None, *, ends: bool = False) -> None:
        """An optimizer's, as torch runs it: hooks are called inside, and none after what raises."""
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
        """Though it is the outer one; and one whose frame's address has been given to another since."""

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
        self.assertEqual(said.getvalue().count("one failed, it is taken out"), 1, said.getvalue())
        (failure,) = self.journal().json(K.FRAME_FAILURE)
        self.assertEqual((failure["hook"], failure["error"], failure["fatal"]), ("one", "ValueError: odd", False))

        with contextlib.redirect_stderr(said):
            self.assertEqual(hook("all", fatal=True)(fails=True), 7)
        self.assertIn("all failed, the agent records no more", said.getvalue())
        self.assertEqual((recorder.level, recorder.mark(K.USER_MARK)), (core.SILENT, 0))
        self.assertEqual([f["fatal"] for f in self.journal().json(K.FRAME_FAILURE)], [False, True])

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
        recorder.set_metadata(metadata.append)  # as a thread that was starting the recording would
        self.assertEqual((recorder.mark(K.USER_MARK), metadata), (0, [str(k)]))
        self.assertEqual((floor.drains.recording, history), (False, ["all", None]))
        floor.drains.record()  # as a thread that was draining would
        self.assertEqual(history, ["all", None, "all", None])


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
        self.assertEqual(said.getvalue().count("raising failed, it is taken out"), 1, said.getvalue())

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


if __name__ == "__main__":
    unittest.main()
