"""Tests the agent on a phantom GPU, with torch's own CUDA allocator."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decode import Journal, Mark, journals
from dpsight_kinds import K
from harness import CASES, PYTHON_PATH, Parted, Result, cases, parted, phantom, rest, run
from test_sources import modules

UPDATES = (K.OPTIMIZER_BEGIN, K.OPTIMIZER_END, K.UPDATED)
GRADIENT_OWNERS = {K.PARAMETER: "parameter", K.GRADIENT: "gradient", K.OPTIMIZER_STATE: "state"}


def lossless(journal: Journal) -> list[str]:
    """Returns the differences between torch's counters and the recorded events."""
    wrong, before, resets = [], {}, [m.k for m in journal.marks if m.kind == K.HISTORY_RESET]
    last_k = 0
    for snapshot, check in journal.chunks():
        reset = any(last_k < k <= check["k"] for k in resets)
        last_k = check["k"]
        for device in check["devices"]:
            stats = device["stats"]
            old = before.get(device["device"], dict.fromkeys(stats, 0))
            before[device["device"]] = stats
            if reset:
                continue
            trace = snapshot["device_traces"][device["device"]] if snapshot else []
            n = Counter(e["action"] for e in trace)
            requested = sum(e["size"] for e in trace if e["action"] == "alloc")
            for key, found in (
                ("allocation.all.allocated", n["alloc"]),
                ("allocation.all.freed", n["free_requested"]),
                ("active.all.freed", n["free_completed"]),
                ("requested_bytes.all.allocated", requested),
            ):
                if stats[key] - old[key] != found and check["drain"]:
                    wrong.append(
                        f"drain {check['drain']} ({check['reason']}): {key} {stats[key] - old[key]} != {found}"
                    )
    return wrong


def guarded_functions() -> Iterator[str]:
    """Yields the functions that the agent's sources guard, except those without which recording stops."""
    for module, tree in modules().items():
        for path, node in _definitions(tree, ""):
            for call in (d for d in node.decorator_list if isinstance(d, ast.Call)):
                fatal = any(k.arg == "fatal" for k in call.keywords)
                if isinstance(call.func, ast.Name) and call.func.id == "guarded" and not fatal:
                    yield f"dpsight.{module}.{path}"


def _definitions(tree: ast.AST, within: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yields all functions in a tree, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield within + node.name, node
            yield from _definitions(node, f"{within}{node.name}.<locals>.")
        else:
            yield from _definitions(node, f"{within}{node.name}." if isinstance(node, ast.ClassDef) else within)


def subscriptions() -> Iterator[tuple[str, str]]:
    """Yields the agent's events and the names of the functions that its sources subscribe to them."""
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "subscribe":
                event, listener = node.func.value, node.args[0]
                assert isinstance(event, ast.Attribute), ast.unparse(node)
                yield (
                    event.attr,
                    "<lambda>" if isinstance(listener, ast.Lambda) else ast.unparse(listener).split(".")[-1],
                )


def mark_of(event: dict[str, Any]) -> int:
    """Returns the number of the mark that an allocator event carries. A line's number may follow it."""
    return int(event["user_metadata"].partition("@")[0] or 0)


class Replay:
    """Replays the allocator's events: the live blocks at any mark."""

    def __init__(self, journal: Journal) -> None:
        self.events: list[dict[str, Any]] = []
        for snapshot, _ in journal.chunks():
            if snapshot:
                self.events += snapshot["device_traces"][0]
        self.live: dict[int, int] = {}
        self.at = 0

    def until(self, k: int) -> dict[int, int]:
        """Returns the blocks that are live before the first event that carries mark k or a later one."""
        while self.at < len(self.events) and mark_of(self.events[self.at]) < k:
            e = self.events[self.at]
            if e["action"] == "alloc":
                self.live[e["addr"]] = e["size"]
            elif e["action"] == "free_completed":
                self.live.pop(e["addr"], None)
            self.at += 1
        return self.live


class Phantom(Parted):
    env: dict[str, str] = {}

    @classmethod
    def setUpClass(cls) -> None:
        cls.env = phantom()

    def checked(self, result: Result, code: int = 0, spared: tuple[str, ...] = ()) -> Journal:
        """Returns the journal of a run. Checks its exit code, and that only the hooks in `spared` failed."""
        self.assertEqual(result.code, code, result.err[-2000:])
        said = [line.removeprefix("dpsight: ").split(" failed, ")[0] for line in result.complaints()]
        self.assertEqual(said, list(spared), result.complaints())
        journal = result.journal
        self.assertEqual(lossless(journal), [])
        return journal


class TestMemory(Phantom):
    @parted
    def test_tags_agree_with_a_walk(self) -> None:
        further = (("vanilla",), ("hooks",), ("vanilla", "moved"))
        for args in cases((("ghost",), ("hooks", "keep"), ("vanilla", "unfriendly")), further):
            with self.subTest(args), run("memory", *args, env=self.env) as r:
                j = self.checked(r, spared=("walking a module",) if "unfriendly" in args else ())
                self.every_tag_binds(j)
                walks = [json.loads(line[5:]) for line in r.out.splitlines() if line.startswith("WALK")]
                self.assertEqual(len(walks), 6)
                self.walks_agree(j, walks, private=args[0] == "hooks")
                self.peaks_agree(j, walks)
                lasting = (K.PARAMETER, K.OPTIMIZER_STATE)
                said = Counter((t.kind, t.address, t.name) for t in j.tags if t.kind in lasting)
                self.assertEqual(max(said.values()), 2, "what stays where it is need not be said again")
                if "unfriendly" in args:
                    self.assertIn(K.HELD, {t.kind for t in j.tags}, "one odd object costs the others no tags")

    @rest
    def test_graphs_of_two_threads(self) -> None:
        with run("threads", env=self.env) as r:
            j = self.checked(r)
            kept = int(r.out.split()[-1])
        ended = [t.ends for t in sorted(j.tags) if t.kind == K.SAVED_TENSOR and t.address == kept]
        self.assertEqual(ended, [False], "the other thread's backward has released a graph that is kept")

    def every_tag_binds(self, j: Journal) -> None:
        """Each tag names a live block, by its base address and its exact size."""
        replay, unbound = Replay(j), []
        for tag in sorted(j.tags):
            if not tag.ends and replay.until(tag.k).get(tag.address) != tag.bytes:
                unbound.append(tag)
        self.assertEqual(unbound, [])

    def walks_agree(self, j: Journal, walks: list[dict[str, Any]], private: bool) -> None:
        """At the boundary of each instrumented step, the live tagged tensors are exactly those that the walk finds."""
        ends = {m.a: m.k for m in j.marks if m.kind == K.STEP_END}
        instrumented = [True, True, True, False, True, False]
        replay, tags = Replay(j), sorted(j.tags)
        owned: dict[int, dict[int, tuple[int, str]]] = {kind: {} for kind in GRADIENT_OWNERS}
        at = 0
        for walk in walks:
            edge = ends[walk["step"]]
            while at < len(tags) and tags[at].k < edge:
                tag = tags[at]
                at += 1
                live = replay.until(tag.k)
                for kind in owned:  # an owner ends with its block
                    owned[kind] = {a: v for a, v in owned[kind].items() if live.get(a) == v[0]}
                if tag.kind in owned:
                    owned[tag.kind][tag.address] = (tag.bytes, tag.name)
            live = replay.until(edge)
            if not instrumented[walk["step"]]:
                continue
            for kind, key in GRADIENT_OWNERS.items():
                found = {name: [a, n] for a, (n, name) in owned[kind].items() if live.get(a) == n}
                if kind == K.GRADIENT and walk["step"] == 4 and private:
                    # A gradient of the bare step before may still be live.
                    found = {n: v for n, v in found.items() if n in walk[key]}
                self.assertEqual(found, walk[key], f"{key} at step {walk['step']}")
            summed = {t.name: [t.address, t.bytes] for t in tags if t.kind == K.SUMMED_GRADIENT and t.k < edge}
            for name, place in walk["summed"].items():
                self.assertEqual(summed[name], place)

    def peaks_agree(self, j: Journal, walks: list[dict[str, Any]]) -> None:
        """Each step's peak is the same, instrumented, bare, and without the agent."""
        self.assertEqual(len({w["peak"] for w in walks[2:]}), 1)
        last = j.chunks()[-1][1]["devices"][0]["stats"]
        self.assertEqual(last["allocated_bytes.all.peak"], walks[-1]["peak"])

    @rest
    def test_agent_does_not_move_the_peak(self) -> None:
        """The agent takes nothing of the device: it makes no request to the allocator, uses no memory past it, and
        makes no stream."""
        for case, *args in (
            ("plain", "cuda", "6"),
            ("private", "cuda", "hooks"),
            ("private", "cuda", "ghost"),
            ("private", "cuda", "fgc"),
            ("private", "cuda", "functorch"),
            ("private", "cuda", "ew"),
            ("compiled", "cuda", "module", "step"),
            ("checkpoint", "plain", "cuda"),
            ("checkpoint", "reentrant", "cuda"),
            ("structures", "cuda", "tensor", "output", "dataclass", "slots", "nested", "output", "nested"),
        ):
            with self.subTest(case=case, args=args):
                with run(case, *args, env={k: v for k, v in self.env.items() if k[:7] != "DPSIGHT"}, agent=False) as r:
                    peaks = re.findall(r"(?:peak|taken).*", r.out)
                    self.assertTrue(peaks, r.err)
                    self.assertRegex(peaks[-1], r'taken .*"allocation.all.allocated": [1-9].*"streams": [1-9]', r.err)
                # phantom_values, which follows values for predictions, is no part of the agent, and allocates a little
                # while torch compiles.
                env = {k: v for k, v in self.env.items() if case != "compiled" or k != "DPSIGHT_PLUGIN"}
                for mode in ("full", "bare"):
                    with run(case, *args, env={**env, "DPSIGHT_MODE": mode}) as r:
                        self.assertEqual(re.findall(r"(?:peak|taken).*", r.out), peaks, mode)
                        self.assertEqual(r.complaints(), [])
                        if mode == "full":
                            self.assertEqual(lossless(r.journal), [])
                            self.every_tag_binds(r.journal)

    def test_every_allocation_has_a_mark(self) -> None:
        """Each allocation has a mark, also on the engine's threads: in backward, a mark since backward began."""
        with run("private", "cuda", "ghost", env=self.env) as r:
            j = self.checked(r)
            spans = {m.k: m for m in j.marks}
            begins = [m.k for m in j.marks if m.kind == K.BACKWARD_BEGIN]
            ends = [m.k for m in j.marks if m.kind == K.BACKWARD_END]
            highest, inside = 0, 0
            for e in Replay(j).events:
                own = mark_of(e)
                highest = max(highest, own)
                for b, end in zip(begins, ends, strict=True):
                    if b < highest < end and e["action"] == "alloc":
                        inside += 1
                        self.assertGreaterEqual(own, b, spans[highest])
            self.assertGreater(inside, 100)

    def test_recomputed_activations_are_tagged(self) -> None:
        for mode, blocks in (("plain", 6), ("reentrant", 6)):
            with self.subTest(mode), run("checkpoint", mode, "cuda", env=self.env) as r:
                j = self.checked(r)
                self.every_tag_binds(j)
                ends = [m.k for m in j.marks if m.kind == K.RECOMPUTE_END]
                self.assertEqual(len(ends), blocks)
                backward = [m.k for m in j.marks if m.kind == K.BACKWARD_BEGIN and not m.flags & K.NESTED_RUN]
                tagged = [t for t in j.tags if t.kind == K.SAVED_TENSOR and not t.ends and t.k > backward[0]]
                self.assertGreaterEqual(len(tagged), 2 * blocks)

    def test_gpu_times(self) -> None:
        """GPU times follow each other without a gap. A step's end has the time of the update that ended it. A step's
        beginning has a time of its own if a drain came before it."""
        with run("plain", "cuda", "20", env={**self.env, "DPSIGHT_SOURCE": "measured"}) as r:
            j = self.checked(r)
            times, stamped = j.intervals(), j.stamped()
            drained, seen = False, Counter()
            for m in j.marks:
                drained = m.kind == K.DRAIN_END or (drained and m.kind != K.STEP_END)
                if m.kind == K.STEP_BEGIN:
                    self.assertEqual(m.k in stamped, drained)
                    seen[drained] += 1
                if m.kind in (K.OPTIMIZER_END, K.FORWARD_BEGIN, K.BACKWARD_END):
                    self.assertIn(m.k, stamped)
                self.assertFalse(m.kind == K.STEP_END and m.k in stamped)
            self.assertGreaterEqual(seen[True], 12)
            self.assertGreater(seen[False], 0)
            self.assertTrue(all(a[1] == b[0] for a, b in zip(times, times[1:], strict=False)))
            self.assertTrue(all(t[2] > 0 for t in times))

    @rest
    def test_gpu_times_of_compiled_steps(self) -> None:
        """If the optimizer's step is part of compiled code, the step ends with that code, which has a time."""
        with run("compiled", "cuda", "step", env={**self.env, "DPSIGHT_SOURCE": "measured"}) as r:
            j = self.checked(r)
            stamped = j.stamped()
            ended = [m.k for m, after in zip(j.marks, j.marks[1:], strict=False) if after.kind == K.STEP_END]
            self.assertGreater(len(ended), 2)
            self.assertEqual([k in stamped for k in ended], [True] * len(ended))

    @rest
    def test_no_event_is_captured(self) -> None:
        """An event in a CUDA graph's capture would never happen. Steps on other streams have times."""
        with run("captured", env={**self.env, "DPSIGHT_SOURCE": "measured"}) as r:
            j = self.checked(r)
            self.assertIn("captures True", r.out)
            stamped = j.stamped()
            forward = [m.k in stamped for m in j.marks if m.kind == K.FORWARD_BEGIN]
            self.assertEqual(forward, [True] * 4 + [False, True])

    @rest
    def test_module_times(self) -> None:
        """Calls of modules have times only in instrumented steps, on the engine's thread too."""
        modules = (K.MODULE_BEGIN, K.MODULE_END)
        with run("plain", "cuda", "8", env={**self.env, "DPSIGHT_SOURCE": "measured"}) as r:
            j = self.checked(r)
            times, stamped = j.intervals(), j.stamped()
            self.assertTrue(all(a[1] == b[0] for a, b in zip(times, times[1:], strict=False)))
            instrumented, seen = True, Counter()
            for m in j.marks:
                if m.kind == K.MODE:
                    instrumented = bool(m.flags & K.INSTRUMENTED)
                if m.kind in modules:
                    self.assertEqual(m.k in stamped, instrumented)
                if m.k in stamped:
                    seen[m.kind, m.thread != j.marks[0].thread, instrumented] += 1
            for kind in modules:
                self.assertGreater(seen[kind, False, True], 0)
            self.assertGreater(seen[K.MODULE_BACKWARD_BEGIN, True, True], 0)
            self.assertEqual(sum(n for (_, elsewhere, on), n in seen.items() if elsewhere and not on), 0)

    @rest
    def test_stamps_take_no_device_memory(self) -> None:
        """With and without timing, a script takes the same of the device."""
        peaks = []
        for source in ("predicted", "measured"):
            with run("plain", "cuda", "6", env={**self.env, "DPSIGHT_SOURCE": source}) as r:
                self.checked(r)
                peaks.append(re.findall(r"(?:peak|taken).*", r.out))
                self.assertIn("taken", peaks[-1][-1])
        self.assertEqual(peaks[0], peaks[1])

    @rest
    def test_children_that_forked_from_cuda(self) -> None:
        """Destroying an inherited CUDA event would end a forked child, so the agent must not do so."""
        for mode in ("workers", "process", "exit"):
            with self.subTest(mode), run("forked", mode, env={**self.env, "DPSIGHT_SOURCE": "measured"}) as r:
                j = self.checked(r)
                self.assertEqual(j.count(K.STEP_END), 8)
                self.assertGreater(len(j.intervals()), 0)

    @rest
    def test_events_outlive_their_device(self) -> None:
        """On a failed device, destroying an event ends the process, and hides its error. The agent destroys none."""
        with run("forked", "failed", env={**self.env, "DPSIGHT_SOURCE": "measured"}) as r:
            j = self.checked(r)
            self.assertEqual(j.count(K.TIMED_OUT), 1)
            self.assertNotIn("destroyed", r.err)

    @rest
    def test_an_exit_at_once_waits_for_no_device_that_hangs(self) -> None:
        begun = time.monotonic()
        with run("forked", "hung", env={**self.env, "DPSIGHT_SOURCE": "measured"}) as r:
            self.assertEqual((r.code, r.complaints()), (7, []), r.err)
            self.assertEqual([e["reason"] for e in r.journal.json(K.FRAME_END)], ["exit"])
        self.assertLess(time.monotonic() - begun, 45)

    @rest
    def test_bare_run(self) -> None:
        with run("plain", "cuda", "6", env={**self.env, "DPSIGHT_MODE": "bare"}) as r:
            j = r.journal
            self.assertEqual((j.payloads(K.FRAME_ALLOCATOR), j.tags), ([], []))
            checks = [c for _, c in j.chunks()]
            self.assertEqual([c["reason"] for c in checks], ["start"] + ["step"] * 6 + ["exit"])
            self.assertGreater(checks[-1]["devices"][0]["stats"]["allocated_bytes.all.peak"], 0)

    @rest
    def test_engines_threads_of_bare_runs(self) -> None:
        """In a bare run, a thread of the engine writes an ENGINE mark before its first mark in each backward. So its
        work does not count as the training thread's."""
        env = {**self.env, "DPSIGHT_MODE": "bare", "DPSIGHT_SOURCE": "measured", "PHANTOM_DEVICES": "2"}
        for what, kind, runs in (
            ("phase", K.PHASE_BEGIN, 20),
            ("recompute", K.RECOMPUTE_BEGIN, 20),
            ("other", K.OPTIMIZER_BEGIN, 20),
        ):
            with self.subTest(what), run("engines", what, env=env) as r:
                self.assertEqual((r.code, r.complaints()), (0, []), r.err)
                j = r.journal
                first = {}
                for m in j.marks:
                    if m.thread != j.marks[0].thread:
                        first.setdefault(m.thread, m.kind)
                self.assertEqual(set(first.values()), {K.ENGINE})
                # A thread writes one ENGINE mark in each backward, right before its first other mark.
                after = {m.k for m in j.marks if m.kind == K.ENGINE}
                self.assertEqual(len(after), runs)
                own = [m for m in j.marks if m.thread != j.marks[0].thread]
                self.assertEqual(
                    [b.kind for a, b in zip(own, own[1:], strict=False) if a.kind == K.ENGINE], [kind] * runs
                )
                if what == "phase":
                    self.assertTrue({m.k for m in own if m.kind == K.PHASE_BEGIN} <= j.stamped())
                if what == "recompute":
                    self.assertIn("out of memory", r.out)
                    at = next(i for i, m in enumerate(own) if m.kind == K.OOM)
                    self.assertEqual([m.kind for m in own[at - 2 : at]], [K.RECOMPUTE_BEGIN, K.FORWARD_BEGIN])

    @rest
    def test_a_run_that_marks_nothing_has_no_hook(self) -> None:
        """A bare run without marks on the engine's thread has no ENGINE marks: their hooks would cost time."""
        with run("plain", "cuda", "6", env={**self.env, "DPSIGHT_MODE": "bare"}) as r:
            self.assertEqual(r.journal.count(K.ENGINE), 0)

    def short(self, *args: str, **env: str) -> Journal:
        """Returns the journal of a run of short steps. The first five steps are recorded."""
        env = {**self.env, "DPSIGHT_SOURCE": "measured", "DPSIGHT_RECORD_STEPS": "5", **env}
        with run("short", *args, env=env) as r:
            self.assertEqual((r.code, r.complaints()), (0, []), r.err)
            return r.journal

    @rest
    def test_most_short_steps_have_no_phases(self) -> None:
        """Outside windows, most short steps have only the mark and the time of their update."""
        for mode in ("full", "bare"):
            with self.subTest(mode):
                j = self.short("260", DPSIGHT_MODE=mode)
                ends = j.ends()
                self.assertEqual(len(ends), 260)
                stamped = j.stamped()
                flags = without = 0
                for step, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
                    inside = [m for m in j.marks if begin < m.k < end]
                    flags = ([flags] + [m.flags for m in inside if m.kind == K.MODE])[-1]
                    passes = {m.kind for m in inside} & {K.FORWARD_BEGIN, K.BACKWARD_BEGIN, K.ZERO_GRAD_BEGIN}
                    updates = [m.kind for m in j.marks if begin < m.k <= end and m.kind in UPDATES]
                    both = [K.OPTIMIZER_BEGIN, K.OPTIMIZER_END]
                    self.assertEqual(updates, [K.UPDATED] if flags & K.UNPHASED else both, step)
                    self.assertEqual(len(passes), 0 if flags & K.UNPHASED else 3, step)
                    if flags & K.UNPHASED:
                        without += 1
                        self.assertFalse(flags & (K.RECORDING | K.INSTRUMENTED), step)
                        self.assertEqual({m.kind for m in inside if m.k in stamped} - {K.STEP_BEGIN}, set(), step)
                        self.assertIn(end, stamped)
                recorded = 15 if mode == "full" else 5  # in two windows; a bare run has marks of the first
                self.assertGreaterEqual(without, (260 - recorded) * 15 // 16 - 8)

    def test_predicted_and_planned_steps_have_phases(self) -> None:
        self.assertEqual(self.short("60", DPSIGHT_SOURCE="predicted").count(K.FORWARD_BEGIN), 60)
        self.assertEqual(self.short("60", "plan").count(K.FORWARD_BEGIN), 60)

    @rest
    def test_steps_that_need_their_phases_have_them(self) -> None:
        """If a script's loop changes, each step still ends, and steps have phases again where they are needed."""
        keep = ("user", "inside", "compiled", "closure-inside", "closure-checkpoint")
        both = ("another", "wraps", "inner", "inner-raises", "twice", "scaler", "scaled")
        for what in (*keep, *both, "eval", "raises", "closure-phase"):
            with self.subTest(what):
                j = self.short("60", what)
                ends = j.ends()
                self.assertIn(len(ends), (59, 60, 61), what)
                self.assertEqual(len({m.a for m in j.marks if m.kind == K.UPDATED and m.a}), 1)
                self.assertEqual(j.unclosed(), [])
                self.assertLess(sum(m.kind == K.BACKWARD_BEGIN and m.k < ends[19] for m in j.marks), 10)
                late = [m for m in j.marks if m.k > ends[21]]
                runs = sum(m.kind == K.BACKWARD_BEGIN for m in late)
                if what in keep:
                    self.assertGreaterEqual(runs, 37)
                else:
                    self.assertLess(runs, 10)
                # Updates inside another update, or in a marked backward, do not count here.
                inside = K.NESTED | K.IN_BACKWARD
                updates = [m for m in j.marks if m.kind == K.OPTIMIZER_BEGIN and not m.flags & inside]
                updates += [m for m in j.marks if m.kind == K.UPDATED and not m.flags & K.IN_BACKWARD]
                if what == "inside":
                    self.assertEqual(len(updates), 20)
                    self.assertEqual(sum(m.kind == K.UPDATED and bool(m.flags & K.IN_BACKWARD) for m in j.marks), 1)
                else:
                    self.assertEqual(len(updates), 59 if what == "raises" else 60)
                if what in both:
                    self.assertFalse(any(m.kind == K.UPDATED for m in late))
                if what == "another":
                    self.assertTrue(any(m.kind == K.MODE and m.flags & K.WARMUP and m.k > ends[19] for m in j.marks))
                if what in ("wraps", "inner", "inner-raises", "twice"):  # also in the first step with two optimizers
                    begun = [m for m in j.marks if m.kind == K.OPTIMIZER_BEGIN and m.k > ends[19]]
                    self.assertEqual([bool(m.flags & K.NESTED) for m in begun], [False, True] * 40)
                if what == "eval":
                    passes = [m for m in late if m.kind == K.FORWARD_BEGIN and not m.flags & K.TRAINING]
                    self.assertEqual(len(passes), 38)

    @rest
    def test_a_failure_in_a_step_without_phases_has_one(self) -> None:
        """The agent marks the pass in which the request failed, which it finds on the stack."""
        around = {
            "forward": [K.FORWARD_BEGIN, K.OOM, K.FORWARD_END],
            "loss": [K.FORWARD_BEGIN, K.OOM, K.FORWARD_END],
            "backward": [K.BACKWARD_BEGIN, K.OOM, K.BACKWARD_END],
            "optimizer": [K.OPTIMIZER_BEGIN, K.OOM, K.OPTIMIZER_END],
            "between": [K.OOM],
        }
        for where, marks in around.items():
            with self.subTest(where):
                j = self.short("61", where)  # the request fails in step 59
                ends = j.ends()
                inside = [m for m in j.marks if ends[58] < m.k < ends[59]]
                own = {*around["optimizer"], *around["forward"], *around["backward"]} - (
                    set() if where == "optimizer" else {K.OPTIMIZER_BEGIN, K.OPTIMIZER_END}
                )
                self.assertEqual([m.kind for m in inside if m.kind in own], marks)
                oom = j.json(K.FRAME_OOM)[0]
                self.assertEqual(bool(oom["module"]), where == "forward", oom)

    @rest
    def test_devices_are_identified(self) -> None:
        """The journal has the UUID of each used device, since CUDA_VISIBLE_DEVICES renumbers devices."""
        env = {**self.env, "PHANTOM_DEVICES": "4", "CUDA_VISIBLE_DEVICES": "2,0,1"}
        for mode in ("full", "bare"):
            with self.subTest(mode), run("devices", "0", "2", env={**env, "DPSIGHT_MODE": mode}) as r:
                self.assertEqual((r.code, r.complaints()), (0, []), r.err)
                found = [d for f in r.journal.json(K.FRAME_DEVICES) for d in f["devices"]]
                self.assertEqual([d["device"] for d in found], [0, 2])
                # The UUID of a phantom GPU ends with its number in the machine, from 1.
                self.assertEqual([int(d["uuid"][-2:]) for d in found], [3, 2])
                said = dict(re.findall(r"cuda:(\d) is (\S+)", r.out))
                self.assertEqual(said, {str(d["device"]): d["uuid"] for d in found})

    @rest
    def test_recording_window(self) -> None:
        with run("plain", "cuda", "8", env={**self.env, "DPSIGHT_RECORD_STEPS": "5"}) as r:
            j = self.windowed(r)
            self.assertEqual(j.modes()[-3:], ["bare"] * 3)
            by_the_clock = ("timer", "alone")  # these drains come only on a busy machine
            self.assertEqual(sum(s is not None and c["reason"] not in by_the_clock for s, c in j.chunks()), 5)

    @rest
    def test_later_windows(self) -> None:
        """Recording begins again at step 200, with the allocator's list of blocks, and then has every event."""
        env = {**self.env, "DPSIGHT_RECORD_STEPS": "5", "DPSIGHT_WINDOW_STEPS": "10"}
        for steps, windows in ((211, 1), (199, 0)):
            with self.subTest(steps), run("plain", "cuda", str(steps), env=env) as r:
                chunks = self.windowed(r).chunks()
                opens = [i for i, (_, c) in enumerate(chunks) if c["reason"] == "window"]
                self.assertEqual(len(opens), windows)
                if not opens:
                    continue
                modes = self.windowed(r).modes()
                # The journal has two modes for the set-up, since lines are followed from the second on, and two modes
                # for step 200: one when the step begins, and one when its recording begins.
                later = [i for i, mode in enumerate(modes) if "instrumented" in mode and i >= 5]
                self.assertEqual(later, [201, 202, 210])
                at = opens[0]
                self.assertEqual((chunks[at - 1][0], chunks[at - 1][1]["recording"]), (None, False))
                snapshot, check = chunks[at]
                live = sum(b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive")
                self.assertEqual(live, check["devices"][0]["stats"]["active_bytes.all.current"])
                self.assertEqual([e for t in snapshot["device_traces"] for e in t], [])
                before = check["devices"][0]["stats"]["allocation.all.allocated"]
                for snapshot, check in chunks[at + 1 :]:
                    if snapshot is None:
                        break
                    n = Counter(e["action"] for e in snapshot["device_traces"][0])
                    now = check["devices"][0]["stats"]["allocation.all.allocated"]
                    self.assertEqual(n["alloc"], now - before)
                    before = now

    @rest
    def test_windows_longer_than_their_distance(self) -> None:
        """While a window lasts, no other window opens."""
        env = {**self.env, "DPSIGHT_RECORD_STEPS": "1", "DPSIGHT_WINDOW_STEPS": "205"}
        with run("plain", "cuda", "404", env=env) as r:
            reasons = [c["reason"] for _, c in self.windowed(r).chunks()]
            self.assertEqual(reasons.count("window"), 1)

    @rest
    def test_no_window_beside_a_script_that_records(self) -> None:
        """If the script records torch's memory history, no window opens, since that would empty the history."""
        env = {**self.env, "DPSIGHT_RECORD_STEPS": "5", "DPSIGHT_WINDOW_STEPS": "3"}
        with run("records_late", "210", env=env) as r:
            j = self.windowed(r)
            self.assertEqual([c for _, c in j.chunks() if c["reason"] == "window"], [])
            self.assertIn("kept 1", r.out)

    def test_stacks(self) -> None:
        """Only allocations in the set-up and in the first steps have stacks."""
        env = {**self.env, "DPSIGHT_STACKS": "python", "DPSIGHT_STACK_STEPS": "2"}
        with run("plain", "cuda", "5", env=env) as r:
            j = self.checked(r)
            ends = {m.a: m.k for m in j.marks if m.kind == K.STEP_END}
            with_stack, without = 0, 0
            for snapshot, _ in j.chunks():
                for e in snapshot["device_traces"][0] if snapshot else []:
                    if e["action"] != "alloc":
                        continue
                    k = mark_of(e)
                    if k > ends[1]:
                        self.assertEqual(e.get("frames", []), [])
                        without += 1
                    elif any(f["filename"].endswith("plain.py") for f in e.get("frames", [])):
                        with_stack += 1
            self.assertGreater(with_stack, 10)
            self.assertGreater(without, 10)

    def windowed(self, r: Result) -> Journal:
        self.assertEqual((r.code, r.complaints()), (0, []), r.err)
        return r.journal


class TestSetups(Phantom):
    """Tests the stages of set-up that the agent finds in scripts that name none."""

    def stages(self, j: Journal) -> list[str]:
        begun, ended = ([m for m in j.marks if m.kind == k] for k in (K.PHASE_BEGIN, K.PHASE_END))
        self.assertEqual([m.a for m in begun if m.flags], [m.a for m in ended if m.flags])
        return [j.names[m.a] for m in begun if m.flags & K.SETUP]

    @rest
    def test_stages(self) -> None:
        with run("setups", "cuda", env=self.env) as r:
            j = self.checked(r)
            before = ["setup.model", "setup.model", "setup.model", "setup.optimizer", "setup.data"]
            loss = ["setup.model"]  # the loss moves in each iteration; marked until the first update
            self.assertEqual(self.stages(j), before + loss)
            # All allocations until the loader is made are in a stage: also packed weights, and Adagrad's sums.
            begins, ends = ([m.k for m in j.marks if m.kind == k] for k in (K.PHASE_BEGIN, K.PHASE_END))
            spans = list(zip(begins, ends, strict=True))
            ks = [mark_of(e) for e in Replay(j).events if e["action"] == "alloc"]
            set_up = [k for k in ks if k < ends[len(before) - 1]]
            self.assertGreater(len(set_up), 8)
            for k in set_up:
                self.assertTrue(any(b <= k < e for b, e in spans), f"{k} lies in none of {spans}")

    @rest
    def test_script_names_its_own(self) -> None:
        with run("setups", "cuda", "phases", env=self.env) as r:
            stages = self.stages(self.checked(r))
            self.assertEqual(stages[:3], ["setup.model", "setup.optimizer", "setup.data"])

    def test_opacus(self) -> None:
        with run("private", "cuda", "hooks", env=self.env) as r:
            stages = self.stages(self.checked(r))
            self.assertEqual(stages, ["setup.model", "setup.optimizer", "setup.data", "setup.privacy"])

    @parted
    def test_ranks(self) -> None:
        for mode in cases(("fsdp2",), ("ddp",)):
            with self.subTest(mode), run("wrapped", mode, env=self.env) as r:
                self.assertIn("setup.wrap", self.stages(self.checked(r)))


class TestEnds(Phantom):
    @parted
    def test_out_of_memory(self) -> None:
        for mode, code in cases([("fatal", 1)], [("caught", 0)]):
            with self.subTest(mode), run("oom", mode, env=self.env) as r:
                j = self.checked(r, code)
                oom = j.json(K.FRAME_OOM)
                self.assertEqual([o["requested"] for o in oom], [1 << 45])
                self.assertGreater(oom[0]["limit"], oom[0]["free"])
                self.assertIn("oom", [c["reason"] for _, c in j.chunks()])
                self.assertEqual([e["oom"] for e in j.json(K.FRAME_EXCEPTION)], [True] if mode == "fatal" else [])
                with run("oom", mode, env=self.env, agent=False) as without:
                    self.assertEqual((r.out, r.err), (without.out, without.err))

    @rest
    def test_errors_that_reach_python(self) -> None:
        """If a workspace fails, torch tries another algorithm. The script gets an error only if all fail."""
        for mode in ((), ("compiled",)):
            with self.subTest(mode):
                self.errors_that_reach_python(*mode)

    def errors_that_reach_python(self, *mode: str) -> None:
        with (
            run("workspaces", *mode, env=self.env) as r,
            run("workspaces", *mode, env=self.env, agent=False) as without,
        ):
            j = self.checked(r)
            if not mode:  # after compiling, the free memory varies by chance
                self.assertEqual((r.out, r.err), (without.out, without.err))
            attempts = [(well, int(n)) for well, n in map(str.split, r.out.splitlines())]
            oom = [m for m in j.marks if m.kind == K.OOM]
            raised = {m.a for m in j.marks if m.kind == K.RAISED}
            self.assertTrue(all(m.flags == K.NOTED for m in oom if m.k not in raised))
            self.assertEqual(sum(n for _, n in attempts), len(oom))
            for well, n in attempts:
                failed, oom = oom[:n], oom[n:]
                last = int(well == "out")
                self.assertEqual([m.k in raised for m in failed], [False] * (n - last) + [True] * last)
            self.assertTrue(any(n > (well == "out") for well, n in attempts), attempts)
            self.assertTrue(any(well == "out" for well, _ in attempts), attempts)

    @rest
    def test_errors_that_reach_python_as_others(self) -> None:
        """If a request outside convolutions fails, the script gets an error, even if of another type."""
        with run("workspaces", "scripted", env=self.env) as r:
            j = self.checked(r)
            self.assertEqual(r.out, "scripted 1\n")
            self.assertEqual([m.flags for m in j.marks if m.kind == K.OOM], [0])

    @rest
    def test_a_failure_while_a_backward_runs(self) -> None:
        """After a failure in backward, the agent reads gradients and graphs only on the engine's thread, which alone
        changes them."""
        for mode in ("aside", "inside", "host"):
            with self.subTest(mode), run("failing", mode, env=self.env) as r:
                j = self.checked(r)
                self.assertEqual(r.out, "failed 1048576\n")
                self.assertEqual([o["requested"] for o in j.json(K.FRAME_OOM)], [1 << 45])
                found = self.tagged_at(j, next(m for m in j.marks if m.kind == K.OOM))
                self.assertEqual(("local mine of fail", K.HELD) in found, mode != "inside", found)
                read = {K.GRADIENT, K.SAVED_TENSOR} & {kind for _, kind in found}
                self.assertEqual(len(read), 2 if mode == "inside" else 0, found)

    @rest
    def test_a_look_that_fails_at_a_failure(self) -> None:
        """If a tagger fails at an out-of-memory error, it is reported once and not used again. Other tags continue."""
        with run("failing", "refused", env=self.env) as r:
            self.assertEqual((r.code, len(r.complaints())), (0, 1), r.err)
            j = r.journal
            first, second = (m for m in j.marks if m.kind == K.OOM)
            for m in (first, second):
                self.assertIn("local mine of fail", [name for name, _ in self.tagged_at(j, m)])
            modes = [m for m in j.marks if m.kind == K.MODE and m.k > second.k]
            self.assertEqual([bool(m.flags & K.INSTRUMENTED) for m in modes], [True, False])
            self.assertGreater(len([t for t in j.tags if t.kind == K.GRADIENT and t.k > second.k]), 3)

    def tagged_at(self, j: Journal, m: Mark) -> set[tuple[str, int]]:
        """Returns names and kinds of the tensors that a mark's thread tagged just after the mark."""
        k = next(t.k for t in j.marks if t.kind == K.TAGS and t.k > m.k and t.thread == m.thread)
        return {(t.name, t.kind) for t in j.tags if t.k == k}

    @rest
    def test_variables_at_a_failure(self) -> None:
        """Reading local variables at a failure keeps none alive, and does not change locals() of a function."""
        env = {**self.env, "DPSIGHT_RECORD_STEPS": "1"}
        with run("oom", "locals", env=env) as r, run("oom", "locals", env=env, agent=False) as without:
            self.assertEqual((r.code, r.complaints()), (0, []), r.err)
            self.assertEqual(r.out, without.out)
            self.assertEqual(r.out.splitlines(), ["mine ['kept'] True", "another's True", *["gone True 4194304"] * 2])

    @rest
    def test_inputs_of_checkpoints_are_saved_tensors(self) -> None:
        """Inputs of nested checkpoints, and recomputed tensors, are saved tensors, too."""
        for mode in ("plain", "reentrant", "nested"):
            with self.subTest(mode), run("checkpointed", mode, env={**self.env, "DPSIGHT_WARMUP": "9"}) as r:
                j = self.checked(r)
                start = [m.k for m in j.marks if m.kind == K.STEP_BEGIN and m.a == 3][0]
                runs = [m.k for m in j.marks if m.kind == K.BACKWARD_BEGIN and m.k > start]
                tags = [t for t in j.tags if t.kind == K.SAVED_TENSOR and not t.ends and t.k > start]
                inputs = {int(line.removeprefix("input ")) for line in r.out.splitlines()}
                self.assertEqual(len(inputs), 3)
                self.assertLessEqual(inputs, {t.address for t in tags if t.k < runs[0]})
                # For each block: the linear layers' and GELU's inputs.
                anew = [t for t in tags if t.k > runs[0] and t.bytes == 32 * 96 * 4]
                self.assertGreaterEqual(len(anew), 6)

    @parted
    def test_lines_of_nodes_made_elsewhere(self) -> None:
        """If two threads may have made a node, its line is unknown, and backward's line stands for it."""
        of = {"worker": {"L"}, "engine": {"L"}, "alone": {"T", "A", "loss"}}
        for case in cases(["worker"], ["engine", "alone"]):
            with self.subTest(case), run("made_elsewhere", case, env=self.env) as r:
                j = self.checked(r)
                texts = (CASES / "made_elsewhere.py").read_text().splitlines()
                rows = [row for frame in j.json(K.FRAME_LINES) for row in frame["lines"]]
                comments = {f"{number}": texts[line - 1].rpartition("# ")[2] for number, _, line, _ in rows}
                begin = [m.k for m in j.marks if m.kind == K.BACKWARD_BEGIN][-1]
                events = [e for e in Replay(j).events if e["action"] == "alloc" and mark_of(e) > begin]
                self.assertEqual({comments[e["user_metadata"].partition("@")[2]] for e in events}, of[case])

    @rest
    def test_when_lines_are_followed(self) -> None:
        """The journal has when the agent stops following lines, since threads keep their last line."""
        for case, want in (("budget", 1), ("debugger", 2)):
            env = {**self.env, "DPSIGHT_SOURCE": "measured", "DPSIGHT_WARMUP": "9"}
            with self.subTest(case), run("lines_end", case, env=env) as r:
                j = self.checked(r)
                modes = [m for m in j.marks if m.kind == K.MODE and m.flags & K.RECORDING]
                self.assertTrue(all(m.flags & K.INSTRUMENTED for m in modes), modes)
                followed = [bool(m.flags & K.LINES) for m in modes]
                self.assertEqual(followed, sorted(followed, reverse=True), modes)
                end = next(m.k for m in modes if not m.flags & K.LINES)
                self.assertEqual(sum(m.kind == K.STEP_BEGIN and m.k < end for m in j.marks), want, modes)

    @rest
    def test_what_lines_take(self) -> None:
        with run("what_lines_take", env=self.env) as r:
            self.checked(r)
            want = ["passed over True", "told again of ['loop'] in 0.2 s True", "1 ms a return True"]
            self.assertEqual(r.out.splitlines(), want)

    @rest
    def test_parameters_are_swapped(self) -> None:
        """Swapping needs parameters without weak references and hooks. The agent leaves none."""
        with run("swapped", env=self.env) as r, run("swapped", env=self.env, agent=False) as without:
            self.assertEqual((r.code, r.complaints()), (0, []), r.err)
            self.assertEqual(r.out, without.out)
            self.assertEqual(r.out.count("torch.float16"), 3, r.out)

    @rest
    def test_script_that_records_for_itself(self) -> None:
        with tempfile.NamedTemporaryFile() as file, run("resets", file.name, env=self.env) as r:
            j = self.checked(r)
            names = [j.names[m.a] for m in j.marks if m.kind == K.HISTORY_RESET]
            self.assertEqual(
                names,
                [
                    "reset_peak_memory_stats",
                    "reset_accumulated_memory_stats",
                    *3 * ["_record_memory_history"],
                ],
            )
            self.assertIn("refused", r.out)  # the script gets torch's error, and recording continues
            events, frames = map(int, re.findall(r"\d+", r.out))
            self.assertGreater(events, 10)
            self.assertGreater(frames, 10)  # the script's own options apply
            self.assertEqual(j.count(K.STEP_END), 7)

    def broken(self, what: str) -> tuple[Journal, dict[str, list[str]]]:
        """Returns the journal of a run of broken.py, which breaks the agent in one place after another, and the
        printed lines by their first word."""
        env = {**self.env, "DPSIGHT_WARMUP": "10000", "DPSIGHT_RECORD_STEPS": "10000"}
        with run("broken", what, env=env) as r:
            self.assertEqual((r.code, r.out.splitlines()[-1]), (0, "end"), r.err[-2000:])
            printed: dict[str, list[str]] = {}
            for line in r.out.splitlines():
                word, _, rest_of_line = line.partition(" ")
                printed.setdefault(word, []).append(rest_of_line)
            self.assertEqual((printed.get("left"), printed.get("differs")), (None, None))
            said = [line for line in r.complaints() if "broken" in line]
            self.assertEqual(len(said), len(set(said)))
            for failure in r.journal.json(K.FRAME_FAILURE):
                self.assertEqual((failure["error"], failure["fatal"]), ("ValueError: broken", False), failure)
                hook = failure["hook"]
                self.assertTrue(any(line.startswith(f"dpsight: {hook} failed, ") for line in said), hook)
            self.assertEqual(lossless(r.journal), [])
            self.assertTrue(r.journal.json(K.FRAME_CHECKPOINT)[-1]["recording"])
            return r.journal, printed

    def test_each_hook_may_fail(self) -> None:
        """If a hook fails, the agent removes and reports it. The script, the events and other hooks continue."""
        j, printed = self.broken("hooks")
        self.assertNotIn("silent", printed)
        # broken.py broke every guarded function in the sources.
        self.assertEqual({place.split(" | ")[1] for place in printed["point"]}, set(guarded_functions()))
        reached = {place.split(" | ")[1] for place in printed["reached"]}
        elsewhere = {
            "dpsight.garbage.Garbage._collect",  # only in predictions that collect garbage at once
            "dpsight.hooks.backward._first_updated_inside",  # only in steps without phases
            "dpsight.hooks.forward._evaluates",
            "dpsight.hooks.script_history._notes",  # only between two windows
            "dpsight.prediction.Prediction._exits",  # only if a script exits with a status
            "dpsight.recorder.drain_timer.DrainTimer._look",  # on another thread
            "dpsight.surveys.Surveys._line_reached",  # no survey in tests
            "dpsight.watchdog.Watchdog._due",  # only in ranks that train over NCCL
            "dpsight.watchdog.Watchdog._made",
        }
        self.assertEqual(set(guarded_functions()) - reached - elsewhere, set(), "no iteration reaches it")
        self.assertEqual({f["hook"] for f in j.json(K.FRAME_FAILURE)}, {p.split(" | ")[0] for p in printed["reached"]})
        # If one hook opens a span and another ends it, there may be one end too many, which is harmless.
        self.assertEqual([m for m in j.unclosed() if m.kind % 2], [])
        end = [m.k for m in j.marks if m.kind == K.USER_STEP][-2]
        after = {m.kind for m in j.marks if m.k > end}
        self.assertLessEqual({K.FORWARD_BEGIN, K.MODULE_BEGIN, K.BACKWARD_BEGIN, K.OPTIMIZER_BEGIN, K.TAGS}, after)

    @rest
    def test_each_listener_may_fail(self) -> None:
        _, printed = self.broken("listeners")
        self.assertNotIn("silent", printed)
        places = Counter((event, which.rpartition(".")[2]) for event, which in map(str.split, printed["point"]))
        elsewhere = {
            ("step_ended", "_step_ended"): 1,
            ("model_called", "_model_called"): 1,
            ("cuda_ready", "_begin"): 1,
            ("line_reached", "_line_reached"): 2,  # of surveys and of garbage, not in tests
            ("hook_failed", "close_failed"): 1,  # subscribed again if the agent is removed
            # These listeners belong to the flight recorder, which is not used here.
            ("request_failed", "_request_failed"): 1,
            ("counters_written", "_look"): 1,
            ("step_begins", "_between"): 1,
            ("model_called", "_between"): 1,
            ("cuda_ready", "_cuda_ready"): 1,
        }
        self.assertEqual(Counter(subscriptions()) - places, Counter(elsewhere), "subscribed, and not among the places")
        told = {event for event, _ in map(str.split, printed["reached"])}
        untold = {  # events that come once or not at all in broken.py, or to which nothing listens there
            "buckets_made",
            "compiled_update_begins",
            "compiled_update_ended",
            "cuda_ready",
            "cuda_starts",
            "devices_seen",
            "dp_imported",
            "drain_alone",
            "hook_failed",
            "journal_opened",
            "line_reached",
            "request_failed",
            "silenced",
            "window_opened",
        }
        self.assertEqual({event for event, _ in subscriptions()} - told, untold)

    @rest
    def test_each_function_may_fail(self) -> None:
        """If a function above the recorder fails, the script continues, and the journal names the failure."""
        _, printed = self.broken("functions")
        self.assertGreater(len(printed["reached"]), 180)
        stderr_alone = {
            "dpsight.registry.Registry._forget",  # Python itself reports failures of these two
            "dpsight.torch_compat.Weak.__del__",
            "dpsight.registry._another",  # models and places that cannot be read
            "dpsight.taggers.optimizer_state._own_state",
            "dpsight.taggers.script_tensors.ScriptTensors._places",
            "dpsight.tags.Tags.user",  # the script calls this function
        }
        self.assertLessEqual(set(printed.get("silent", ())), stderr_alone)

    def test_a_drain_fails_and_a_later_one_does_not(self) -> None:
        """If a drain fails before it empties torch's event history, no event is lost."""
        with run("undrained", "before", env=self.env) as r:
            self.assertEqual((r.code, len(r.complaints())), (0, 1), r.err)
            self.assertIn("dpsight: a drain failed, a later drain tries again: ValueError: broken", r.err)
            j = r.journal
            self.assertEqual([(f["hook"], f["fatal"]) for f in j.json(K.FRAME_FAILURE)], [("a drain", False)])
            self.assertEqual((lossless(j), j.unclosed(), j.count(K.EXIT)), ([], [], 1))
            drains = [c["drain"] for c in j.json(K.FRAME_CHECKPOINT)]
            # On a slow machine the timer may have drained before.
            missing = sorted(set(range(drains[-1] + 1)) - set(drains))
            self.assertEqual(missing, [missing[0], missing[0] + 1])
            self.assertGreaterEqual(missing[0], 4)

    @rest
    def test_a_drain_fails_with_its_events(self) -> None:
        """If a drain loses its events, the next drain has the allocator's list of blocks."""
        with run("undrained", "after", env=self.env) as r:
            self.assertEqual((r.code, len(r.complaints())), (0, 1), r.err)
            reasons = [c["reason"] for c in r.journal.json(K.FRAME_CHECKPOINT)]
            self.assertEqual(reasons.count("lost"), 1, reasons)
            self.assertEqual(reasons[-1], "exit")

    @rest
    def test_without_drains_nothing_is_recorded(self) -> None:
        with run("undrained", "always", env=self.env) as r:
            self.assertEqual(r.code, 0, r.err)
            failures = [(f["hook"], f["fatal"]) for f in r.journal.json(K.FRAME_FAILURE)]
            self.assertEqual(failures, [("a drain", False), ("draining", True)])
            self.assertEqual(r.journal.count(K.EXIT), 0)

    @rest
    def test_killed_at_any_moment(self) -> None:
        """After SIGKILL, all drained events and all marks can be read."""
        for delay in (0.02, 0.1, 0.3):
            with self.subTest(delay), tempfile.TemporaryDirectory() as folder:
                env = {**os.environ, **self.env, "DPSIGHT_SPOOL": folder, "PYTHONPATH": str(PYTHON_PATH)}
                # Records every step, however fast the machine, and prints lines at once.
                env.update(DPSIGHT_RECORD_STEPS="1000000", PYTHONUNBUFFERED="1")
                command = [sys.executable, str(CASES / "plain.py"), "cuda", "100000"]
                with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
                    assert child.stdout is not None
                    child.stdout.readline()
                    time.sleep(delay)
                    child.send_signal(signal.SIGKILL)
                j = journals(Path(folder))[0]
                self.assertEqual([m.k for m in j.marks], list(range(1, len(j.marks) + 1)))
                self.assertEqual(lossless(j), [])
                self.assertGreaterEqual(len(j.chunks()), 2)
                self.assertEqual(j.json(K.FRAME_END), [])

    @rest
    def test_drain_on_request(self) -> None:
        """The collector asks for a drain by a word in the marks' header. The agent drains at the next mark."""
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, **self.env, "DPSIGHT_SPOOL": folder, "PYTHONPATH": str(PYTHON_PATH)}
            command = [sys.executable, str(CASES / "plain.py"), "cuda", "100000"]
            with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
                assert child.stdout is not None
                child.stdout.readline()
                marks = next(Path(folder).glob("*.marks"))
                with marks.open("r+b") as f:
                    f.seek(12)
                    f.write(b"\x01\x00\x00\x00")
                deadline = time.monotonic() + 20
                while marks.read_bytes()[12] and time.monotonic() < deadline:
                    child.stdout.readline()
                child.kill()  # kill at once: the agent answers only after the drain is on disk
            self.assertEqual(marks.read_bytes()[12], 0)
            self.assertIn("request", [c["reason"] for _, c in journals(Path(folder))[0].chunks()])


class TestRefusals(Parted):
    def test_old_or_cpu_torch(self) -> None:
        for patch, sentence in (
            ("version.cuda = None", "is not a CUDA build: install a CUDA build of torch"),
            ("C.remove()", "is too old: install torch 2.10 or later"),
        ):
            with self.subTest(patch), tempfile.TemporaryDirectory() as folder:
                fake = Path(folder) / "torch"
                fake.mkdir()
                cuda = "None" if "cuda" in patch else "'12.8'"
                (fake / "__init__.py").write_text(
                    f"class version:\n    cuda = {cuda}\nclass _C:\n    pass\n__version__ = '2.6.0'\n"
                )
                env = {**os.environ, "PYTHONPATH": f"{PYTHON_PATH}{os.pathsep}{folder}", "DPSIGHT_SPOOL": folder}
                env.pop("DPSIGHT_ALLOW_CPU", None)
                command = [sys.executable, "-c", "import torch; print('went on')"]
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, f"dpsight: torch 2.6.0 {sentence}\n")


if __name__ == "__main__":
    unittest.main()
