"""Tests the marks and steps of many kinds of training loops, on the CPU."""

from __future__ import annotations

import signal
import sys
import time
import unittest
from unittest import mock

from decode import Journal
from dpsight_kinds import K
from harness import PYTHON_PATH, Parted, cases, parted, rest, run


class Case(Parted):
    def check(self, case: str, *args: str, steps: int, env: dict[str, str] | None = None, code: int = 0) -> Journal:
        with run(case, *args, env=env) as result:
            self.assertEqual(result.code, code, result.err[-2000:])
            self.assertEqual(result.complaints(), [])
            journal = result.journal
            self.assertEqual(journal.count(K.STEP_END), steps, journal.line())
            self.assertEqual(journal.unclosed(), [])
            self.assertEqual([m.k for m in journal.marks], list(range(1, len(journal.marks) + 1)))
            return journal


class TestLoops(Case):
    def test_plain(self) -> None:
        j = self.check("plain", "cpu", "8", steps=8)
        # Each step has a mode, also the last one, which is not finished.
        self.assertEqual(j.modes(), ["warm-up instrumented"] * 3 + ["instrumented", "bare"] * 3)
        self.assertEqual(j.count(K.FORWARD_BEGIN), 2 * 8 + 1)
        self.assertEqual(j.count(K.MODULE_BEGIN), 4 * 6)  # four modules in each of six instrumented steps
        self.assertEqual({m["path"] for m in j.modules.values()}, {"", "0", "1", "2", "3"})
        paths = {m["path"]: m for m in j.modules.values() if m["class"] == "Linear"}
        self.assertEqual(paths["0"]["parameter_bytes"], (256 * 1024 + 1024) * 4)

    @rest
    def test_most_steps_of_a_long_window_are_bare(self) -> None:
        j = self.check("plain", "cpu", "60", steps=60)
        instrumented = [i for i, mode in enumerate(j.modes()) if "instrumented" in mode]
        self.assertEqual(instrumented, [0, 1, 2, *range(3, 23, 2), 35])

    def test_bare_run(self) -> None:
        j = self.check("plain", "cpu", "5", steps=5, env={"DPSIGHT_MODE": "bare"})
        self.assertEqual(j.modes(), ["warm-up"] * 3 + ["bare"] * 3)
        self.assertEqual(j.count(K.MODULE_BEGIN) + j.count(K.TAGS) + j.count(K.MODULE_BACKWARD_BEGIN), 0)

    @rest
    def test_backward_knows_its_modules(self) -> None:
        j = self.check("plain", "cpu", "1", steps=1)
        paths = [
            (m.kind, j.modules[m.a]["path"], j.modules[m.a]["class"])
            for m in j.marks
            if m.kind in (K.MODULE_BACKWARD_BEGIN, K.MODULE_BACKWARD_END)
        ]
        entered = [p for k, p, _ in paths if k == K.MODULE_BACKWARD_BEGIN]
        self.assertEqual(entered, ["", "", "3", "2", "1", "0"])  # loss, model, children from the last
        # Backward leaves each child before it enters the next.
        inside = []
        for kind, path, _ in paths:
            if kind == K.MODULE_BACKWARD_BEGIN:
                self.assertLessEqual(len(inside), 1)
                inside.append(path)
            else:
                self.assertEqual(inside.pop(), path)

    def passed(self, j: Journal) -> list[list[str]]:
        """Returns, for each step, the modules that backward enters or leaves and the phases that it passes, in
        order."""
        steps, now = [], []
        for m in j.marks:
            if m.kind in (K.MODULE_BACKWARD_BEGIN, K.MODULE_BACKWARD_END):
                verb = "enters" if m.kind == K.MODULE_BACKWARD_BEGIN else "leaves"
                now.append(f"{verb} {j.modules[m.a]['path'] or 'net'}")
            elif m.kind == K.PHASE_BEGIN:
                now.append(j.names[m.a])
            elif m.kind == K.STEP_END:
                steps.append(now)
                now = []
        return steps

    @rest
    def test_backward_enters_whatever_modules_return(self) -> None:
        """Modules may return dictionaries, dataclasses and nested containers with tensors at any place."""
        kinds = ["tensor", "tuple", "named", "list", "dict", "ordered", "user dict", "stubborn", "output", "dataclass"]
        kinds += ["slots", "namespace", "stale", "nested"]
        with run("structures", "cpu", *kinds, env={"DPSIGHT_WARMUP": str(len(kinds))}) as r:
            self.assertEqual((r.code, r.complaints()), (0, []), r.err)
            for kind, found in zip(kinds, self.passed(r.journal), strict=True):
                with self.subTest(kind):
                    second = ["enters second", "in block", "enters second.down", "leaves second.down"]
                    second += ["enters second.up", "leaves second.up", "leaves second"]
                    first = ["enters first", "in block", "enters first.down", "leaves first.down", "enters first.up"]
                    wanted = ["outside", "enters net", "in net", *second, "between", *first]
                    self.assertEqual(found[: len(wanted)], wanted)
        self.assertEqual(len(set(r.out.splitlines())), 1, r.out)
        with run("structures", "cpu", *kinds, agent=False) as alone:
            self.assertEqual(alone.out, r.out)

    @rest
    def test_backward_enters_no_module_for_what_it_only_gives_back(self) -> None:
        with run("passing", env={"DPSIGHT_WARMUP": "3"}) as r:
            self.assertEqual((r.code, r.complaints()), (0, []), r.err)
            entered = [[p for p in step if p.startswith("enters ")] for step in self.passed(r.journal)]
            found = [[p.removeprefix("enters ").split(".")[-1] for p in step] for step in entered]
        names = ["passing", "inner", "before"]
        self.assertEqual(found, [["net", "2", "0"], ["net", *names], ["Net", *names]])

    @rest
    def test_accumulation(self) -> None:
        j = self.check("accumulate", steps=2)
        self.assertEqual(j.count(K.BACKWARD_BEGIN), 6)

    @rest
    def test_several_optimizers(self) -> None:
        # Until the agent has seen the second optimizer, it counts an update of the first one as a step.
        for name, order, steps in (
            ("in turn", ["first", "second"] * 4, 5),
            ("three to one", ["first", "first", "first", "second"] * 3, 6),
            ("together", ["both"] * 4, 5),
            ("one after the other", ["first"] * 6 + ["second"] * 3, 9),
        ):
            with self.subTest(name):
                self.check("sequences", *order, steps=steps)

    @rest
    def test_odd_loops(self) -> None:
        expected = {
            "in_backward": 3,
            "func": 0,
            "manual": 0,
            "scaler": 4,
            "interrupt": 3,
            "step_raises": 2,
            "subclass": 2,
        }
        for mode, steps in expected.items():
            with self.subTest(mode):
                j = self.check("odd", mode, steps=steps)
                if mode == "interrupt":
                    self.assertEqual(j.count(K.FORWARD_END), j.count(K.FORWARD_BEGIN))
                    self.assertEqual(sum(m.kind == K.FORWARD_END and bool(m.flags & K.REPAIRED) for m in j.marks), 1)

    @rest
    def test_the_script_gets_what_its_handlers_raise(self) -> None:
        # A signal handler may run while a hook of the agent runs. If the handler raises, the script gets the
        # exception, and the agent continues.
        for args in (("timeout",), ("timeout", "partial")):
            with self.subTest(args), run("odd", *args) as r:
                self.assertEqual((r.code, r.complaints()), (0, []), r.err[-2000:])
                # Not all 150 exceptions arrive: Python drops those that are raised in a weak reference's callback.
                self.assertGreater(int(r.out.split()[1]), 100)

    def test_threads(self) -> None:
        with run("odd", "threads") as r:
            self.assertEqual((r.code, r.complaints()), (0, []), r.err)
            self.assertEqual(r.journal.count(K.OPTIMIZER_END), 4)
            self.assertEqual(r.journal.unclosed(), [])

    @rest
    def test_hooks_that_live_stay_noted(self) -> None:
        with run("odd", "hooks") as r:
            self.assertEqual((r.out.split(), r.complaints()), (["True", "True", "done"], []), r.err)

    @rest
    def test_hooks_are_set_unseen(self) -> None:
        with run("odd", "watched") as r, run("odd", "watched", agent=False) as without:
            self.assertEqual((r.out, r.complaints()), (without.out, []), r.err)

    def test_user_steps(self) -> None:
        # Without a plan, the first update ends a step, before the script's first call of dpsight.step().
        j = self.check("odd", "user", steps=4)
        counts = [(m.a - 1, m.b - 1) for m in j.marks if m.kind == K.USER_STEP]  # 0 stands for not stated
        self.assertEqual(counts, [(32, 64)] * 3)
        self.assertEqual(j.json(K.FRAME_CONFIG)[0], {"method": "vanilla", "api_key": "***", "rate": None})
        self.assertEqual([m["value"] for m in j.json(K.FRAME_METRIC)], [0.5, 1.5, 2.5])
        with run("odd", "planned") as r:
            self.assertIn("steps 6", r.out)
            modes = ["warm-up instrumented"] * 2 + ["instrumented", "bare"] * 2 + ["instrumented"]
            self.assertEqual(r.journal.modes()[1:], modes, r.journal.line())
            self.assertEqual(r.journal.count(K.STEP_END), 6)
            self.assertEqual(r.journal.json(K.FRAME_PLAN), [{"warmup": 2, "timed": 2}])
        with run("odd", "planned", env={"DPSIGHT_MODE": "bare"}) as r:
            self.assertIn("steps 4", r.out)

    def test_api_without_collector(self) -> None:
        with run("odd", "planned", agent=False, env={"PYTHONPATH": str(__import__("harness").PYTHON_PATH)}) as r:
            self.assertEqual((r.code, r.journals), (0, []), r.err)
            self.assertIn("steps 4", r.out)


class TestSetups(Case):
    def test_no_stage_opens_a_journal(self) -> None:
        # A process that only builds a model, such as a launcher, must write no journal. So the journal begins with the
        # first forward pass.
        j = self.check("setups", "cpu", steps=3)
        first = next(m for m in j.marks if m.kind in (K.FORWARD_BEGIN, K.PHASE_BEGIN))
        self.assertEqual(first.kind, K.FORWARD_BEGIN)


class TestOpacus(Case):
    @parted
    def test_modes(self) -> None:
        for mode in cases(("hooks", "ghost"), ("functorch", "ew", "fgc")):
            with self.subTest(mode):
                j = self.check("private", "cpu", mode, steps=4)
                self.assertEqual(j.count(K.DP_STEP_BEGIN), 4)
                self.assertEqual(j.count(K.DP_BACKWARD_BEGIN), 4 if mode in ("ghost", "fgc") else 0)
                phases = [j.names[m.a] for m in j.marks if m.kind == K.PHASE_BEGIN]
                self.assertEqual(phases[-2:], ["clip" if mode not in ("ghost", "fgc") else "accumulate", "noise"])
                self.assertFalse(any("_module" in m["path"] for m in j.modules.values()))
                privacy = j.json(K.FRAME_PRIVACY)[-1]
                self.assertEqual((privacy["noise_multiplier"], privacy["max_grad_norm"]), (1.0, 1.0))
                if mode != "fgc":
                    self.assertEqual(privacy["grad_sample_mode"], mode)
                    self.assertEqual((privacy["poisson"], privacy["sample_rate"]), (False, 0.25))
                    self.assertEqual((privacy["delta"], privacy["accountant"]), (1e-5, "rdp"))
                    self.assertGreater(privacy["epsilon"], 0)
                norms = {m["path"]: m["norm_by"] for m in j.modules.values()}
                expected = {"ghost": "ghost", "ew": None}.get(mode, "per_sample")
                self.assertEqual(norms["up"], expected)

    @rest
    def test_physical_batches(self) -> None:
        j = self.check("private", "cpu", "hooks", "bmm", steps=4)
        skipped = [bool(m.flags & K.SKIPPED) for m in j.marks if m.kind == K.DP_STEP_END]
        self.assertEqual(skipped, [True, False] * 4)


class TestCheckpointing(Case):
    @rest
    def test_kinds(self) -> None:
        with run("checkpoint", "none", agent=False) as r:
            plain = r.out
        for mode, recomputes in (("none", 0), ("plain", 6), ("reentrant", 6), ("nested", 12)):
            with self.subTest(mode), run("checkpoint", mode) as r:
                j = r.journal
                self.assertEqual(j.count(K.STEP_END), 2)
                self.assertEqual(j.count(K.RECOMPUTE_BEGIN), recomputes)
                self.assertEqual(j.count(K.RECOMPUTE_END), recomputes)
                if mode != "nested":
                    self.assertEqual(r.out, plain)


class TestCompile(Case):
    @rest
    def test_dynamo_sees_no_agent(self) -> None:
        modes = ("module", "inplace", "subclass", "blocks", "function", "hooks", "step", "optimizer")
        with run("compiled", "cpu", *modes, agent=False) as r:
            without = r.out
        with run("compiled", "cpu", *modes) as r:
            self.assertEqual(r.out, without, r.err[-1500:])
            self.assertEqual(r.complaints(), [])
            self.assertNotIn("global hook", r.err)
            self.assertEqual(r.journal.count(K.STEP_END), 4 * len(modes), r.journal.line())


class TestProcesses(Parted):
    @rest
    def test_ends(self) -> None:
        for mode, code, end in (
            ("exit", 3, "exit"),
            ("within", 7, None),
            ("kill", -9, None),
            ("system_exit", 4, "exit"),
            ("plain", 0, "exit"),
        ):
            with self.subTest(mode), run("processes", mode) as r:
                self.assertEqual(r.code, code)
                self.assertEqual(r.journal.count(K.STEP_END), 1 if mode == "plain" else 2)
                self.assertEqual([e["reason"] for e in r.journal.json(K.FRAME_END)], [end] if end else [])

    @rest
    def test_no_handler_keeps_an_exit_at_once(self) -> None:
        for word in ("SIGALRM", "SIGINT"):
            with self.subTest(word), run("processes", "late", word) as r:
                self.assertEqual((r.code, r.out, r.complaints()), (7, "", []), r.err[-2000:])
                self.assertEqual([e["reason"] for e in r.journal.json(K.FRAME_END)], ["exit"])

    @rest
    def test_exception(self) -> None:
        with run("processes", "exception", env={"MY_PASSWORD": "correct-horse"}) as r:
            self.assertEqual(r.code, 1)
            found = r.journal.json(K.FRAME_EXCEPTION)
            self.assertEqual(found, [{"type": "ValueError", "message": "the password is ***", "oom": False}])
            self.assertEqual(r.journal.json(K.FRAME_END)[0]["reason"], "exception")
            for file in r.folder.iterdir():
                self.assertNotIn(b"correct-horse", file.read_bytes())

    @rest
    def test_children(self) -> None:
        for mode, steps in (
            ("exec", [1, 2]),
            ("fork", [2, 3]),
            ("idle_fork", [2]),
            ("held_fork", [1]),
            ("spawn", [2, 2]),
            ("mp_fork", [2, 2]),
            ("workers", [2]),
        ):
            with self.subTest(mode), run("processes", mode) as r:
                self.assertEqual(r.code, 0, r.err)
                self.assertEqual(r.complaints(), [])
                self.assertEqual(sorted(j.count(K.STEP_END) for j in r.journals), steps)
                if mode == "fork":
                    parent, child = sorted(r.journals, key=lambda j: j.process["forked"])
                    self.assertEqual((parent.count(K.FORKED), child.process["forked"]), (1, 1))


class TestTimes(Parted):
    @rest
    def test_a_device_that_hangs_does_not_keep_the_script(self) -> None:
        sys.path.insert(0, str(PYTHON_PATH))
        self.addCleanup(sys.path.remove, str(PYTHON_PATH))
        from dpsight.recorder import timing

        happened = mock.Mock(**{"query.return_value": True, "elapsed_time.return_value": 2.0})
        hung = mock.Mock(**{"query.return_value": False, "synchronize.side_effect": AssertionError("it never happens")})
        stamps = timing.Stamps()
        stamps.on, stamps.places = True, {0: ([], {})}
        stamps.pending = [(1, happened, 0, 0), (2, happened, 0, 0), (3, hung, 0, 0)]
        with mock.patch.object(timing, "recorder") as recorder:
            stamps.flush(patience=0.01)
        recorder.frame.assert_called_once_with(K.FRAME_TIMES, timing.INTERVAL.pack(1, 2, 2_000_000))

    @rest
    def test_few_events_are_asked_whether_they_happened(self) -> None:
        sys.path.insert(0, str(PYTHON_PATH))
        self.addCleanup(sys.path.remove, str(PYTHON_PATH))
        from dpsight.recorder import timing

        def pending(happened: list[bool], streams: list[int]) -> list[tuple[int, mock.Mock, int, int]]:
            events = [mock.Mock(**{"query.return_value": h}) for h in happened]
            return [(k, e, 0, s) for k, (e, s) in enumerate(zip(events, streams, strict=True), 1)]

        for name, happened, streams, want, most in (
            ("all of one stream", [True] * 100, [0] * 100, 100, 1),
            ("some of one stream", [True] * 37 + [False] * 63, [0] * 100, 37, 8),
            ("none", [False] * 3, [0] * 3, 0, 3),
            # Whether one stream's events have happened says nothing about another stream's events.
            ("two streams", [True, True, False, True], [0, 0, 1, 0], 2, 2),
            ("all of two streams", [True] * 4, [0, 1, 0, 1], 4, 3),
        ):
            with self.subTest(name):
                stamps = timing.Stamps()
                stamps.pending = pending(happened, streams)
                self.assertEqual(stamps.happened(), want)
                self.assertLessEqual(sum(e.query.call_count for _, e, _, _ in stamps.pending), most)


class TestInterruptions(Parted):
    def setUp(self) -> None:
        super().setUp()
        sys.path.insert(0, str(PYTHON_PATH))
        self.addCleanup(sys.path.remove, str(PYTHON_PATH))
        from dpsight.interruptions import Uninterrupted

        self.context = Uninterrupted()
        for number in (signal.SIGUSR1, signal.SIGALRM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))

    @rest
    def test_handlers_wait(self) -> None:
        called: list[int] = []
        handler = lambda number, _frame: called.append(number)  # noqa: E731
        signal.signal(signal.SIGUSR1, handler)
        with self.context:
            with self.context:
                signal.raise_signal(signal.SIGUSR1)
            self.assertEqual(called, [])
        self.assertEqual(called, [signal.SIGUSR1])
        self.assertIs(signal.getsignal(signal.SIGUSR1), handler)

    @rest
    def test_whatever_handlers_raise_the_context_is_left(self) -> None:
        """If the context stayed entered after a handler raised, Ctrl-C would be blocked for ever."""

        def late(_number: int, _frame: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGALRM, late)
        raised, until = 0, time.monotonic() + 2
        while time.monotonic() < until:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True:
                    with self.context:
                        pass
            except TimeoutError:
                raised += 1
                self.assertEqual(self.context._depth, 0)
        with self.context:
            pass
        self.assertIs(signal.getsignal(signal.SIGALRM), late)
        self.assertGreater(raised, 100)


class TestWindows(Parted):
    """Tests that a later window opens only if drains, including the window's own, take at most 5 % of wall time."""

    @rest
    def test_share_of_wall_time(self) -> None:
        sys.path.insert(0, str(PYTHON_PATH))
        self.addCleanup(sys.path.remove, str(PYTHON_PATH))
        from dpsight.recorder import windows
        from dpsight.recorder.settings import Settings

        now = 7_000_000_000

        def at(source: str, drained: float, *, step: int = 200, seconds: float) -> tuple[int, int]:
            """Returns the first and last step of the latest window when a step begins, if drains took `drained`
            seconds in 100 recorded steps."""
            settings = Settings({"DPSIGHT_SOURCE": source})
            with (
                mock.patch.object(windows.recorder, "settings", settings),
                mock.patch.multiple(windows.drains, spent_ns=round(drained * 1e9), can_resume=lambda: True),
                mock.patch.object(windows.time, "monotonic_ns") as clock,
            ):
                clock.return_value = now
                found = windows.Windows()
                clock.return_value = now + round(seconds * 1e9)
                found.advance(step)
                return found.begin, found.end

        for source, drained, seconds, opens in (
            ("measured", 0.45, 10.0, True),  # 0.45 s and 0.045 s for this window: less than 5 %
            ("measured", 0.46, 10.0, False),  # 0.46 s alone is less than 5 %, but 0.506 s is not
            ("measured", 0.46, 10.2, True),
            ("measured", 0.0, 0.001, True),
            ("predicted", 5.0, 10.0, True),  # predictions have no times, so only the number of steps decides
        ):
            with self.subTest(source=source, drained=drained, seconds=seconds):
                window = at(source, drained, seconds=seconds)
                self.assertEqual(window, (200, 210) if opens else (0, 100))
        # If a window would have taken too long at step 200, it may open at any later step.
        self.assertEqual(at("measured", 0.46, step=205, seconds=10.2), (205, 215))
        self.assertEqual(at("measured", 0.0, step=199, seconds=10.0), (0, 100))


if __name__ == "__main__":
    unittest.main()
