"""Runs torch's own tests of its CUDA memory on the phantom GPU.

    test_cuda.py run FILE ABOUT RESULTS [ONLY]
    test_cuda.py write REASONS LIST RESULTS…

FILE is a version of torch's test/test_cuda.py. ABOUT describes it: a title, then sentences if needed. `run` runs the
tests that concern the allocator, streams, events, graphs and their pools, pinned memory and the memory history. The
tests run one after another in one process, and in a new process after a test that hangs or crashes. Failed tests run
again, each in its own process, since a failed test leaves memory behind. Tests that need the allocator's expandable
segments run in a process that has these enabled. `run` writes RESULTS. `write` makes LIST from one or more RESULTS,
which may come from several files and versions of torch. LIST has each test with its result, and for each test that does
not pass a reason from REASONS. A failure without a reason is an error.
"""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

# Matches test classes about the results of kernels. Only their tests that look for leaks are run. The names of the
# other classes say that they are about memory and order.
CLASSES = re.compile(r"Optims|Autocast|GDS|CompileKernel")
NAMES = re.compile(
    r"memory|alloc|stream|event|graph|pinned|mempool|pool\b|snapshot|history|segment|out_of_memory|oom|cudart|cache"
    r"|block|non_blocking|workspace|leak|trace|plot|gc_|garbage|expandable|_raises_|rounding|free|fragment"
    r"|checkpoint_state"
)
SECONDS = 300  # limit for one test: most take under 1 s, but a busy machine is slower


def cases(suite):
    import unittest

    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        else:
            yield one


def stand_in(file: str) -> None:
    """Adds to torch's own testing modules the names that FILE imports and that this torch lacks, so that a later
    torch's file can be loaded. Each becomes a decorator that skips its test."""
    import ast
    import importlib
    import unittest

    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.testing._internal."):
            module = importlib.import_module(node.module)
            for name in [alias.name for alias in node.names if not hasattr(module, alias.name)]:
                setattr(module, name, lambda *_, why=f"takes `{name}` from a later torch": unittest.skip(why))


def child(file: str, done: set[str], only: str) -> None:
    import importlib.util
    import unittest

    import torch

    sys.path.insert(0, os.environ["PHANTOM_MODULE"])
    import phantom_values

    phantom_values.install(torch)
    sys.argv = [file]
    stand_in(file)
    spec = importlib.util.spec_from_file_location("test_cuda", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_cuda"] = module
    spec.loader.exec_module(module)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**what):
        out.write(json.dumps(what) + "\n")
        out.flush()

    chosen = []
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == "test_cuda":
            found = list(cases(unittest.defaultTestLoader.loadTestsFromTestCase(value)))
            chosen += [c for c in found if "leak" in c.id()] if CLASSES.search(value.__name__) else found
    for case in chosen:
        _, owner, name = case.id().rsplit(".", 2)
        key = f"{owner}.{name}"
        if key in done or not re.search(only, key):
            continue
        if owner == "TestCuda" and not NAMES.search(name):
            continue
        say(started=key)
        result = unittest.TestResult()
        case(result)
        problems = result.errors + result.failures
        if result.skipped:
            say(test=key, result="skipped", why=result.skipped[0][1])
        elif result.expectedFailures:
            say(test=key, result="skipped", why="torch expects it to fail")
        elif problems:
            say(test=key, result="failed", why=problems[0][1])
        else:
            say(test=key, result="passed", why="")
    say(end=True)


def run(file: str, only: str) -> dict[str, tuple[str, str]]:
    """Returns the results by test name, with torch's message for each test that did not pass."""
    results = run_together(file, only)
    for name in [name for name, (_, why) in results.items() if why == "requires expandable_segments"]:
        results |= run_together(file, f"^{re.escape(name)}$", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    for name in [name for name, (result, _) in results.items() if result == "failed"]:
        results |= run_together(file, f"^{re.escape(name)}$")
    return results


def run_together(file: str, only: str, **environment: str) -> dict[str, tuple[str, str]]:
    results: dict[str, tuple[str, str]] = {}
    while True:
        process = subprocess.Popen(
            [sys.executable, __file__, "--child", file, json.dumps(sorted(results)), only],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | environment,
        )
        running, last, ended = None, [time.monotonic()], False

        def watch(process=process, last=last):
            while process.poll() is None:
                time.sleep(1)
                if time.monotonic() - last[0] > SECONDS:
                    process.kill()

        threading.Thread(target=watch, daemon=True).start()
        for line in process.stdout:
            said = json.loads(line)
            last[0] = time.monotonic()
            running = said.get("started")
            ended = "end" in said
            if "test" in said:
                results[said["test"]] = (said["result"], said["why"])
                print(f"{said['result']:8} {said['test']}", file=sys.stderr, flush=True)
        code = process.wait()
        if ended:
            return results
        if running is None:
            raise SystemExit(f"test_cuda: the tests ended with code {code} between two of them, after {len(results)}")
        results[running] = ("failed", f"the process ended with code {code}")
        print(f"{'ended':8} {running}", file=sys.stderr, flush=True)


def read_reasons(path: Path) -> list[tuple[re.Pattern[str], str, str]]:
    """Returns the lines of REASONS. Each has a pattern of test names, a kind of KINDS and a sentence, separated by
    tabs."""
    reasons = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, kind, sentence = line.split("\t")
            reasons.append((re.compile(pattern), kind, sentence))
    return reasons


def last_line(why: str) -> str:
    lines = why.split("\nTo execute this test")[0].strip().splitlines()
    return lines[-1] if lines else why


KINDS = {
    "passed": "passed",
    "values": "needs computed values",
    "gone": "calls what this torch has otherwise",
    "failed": "failed",
    "skipped": "skipped by torch",
}


def grouped(names: list[str], methods: list[str]) -> list[tuple[str, int]]:
    """Returns test names without their parameters' values, each with the number of such tests."""
    count: collections.Counter[str] = collections.Counter()
    for name in names:
        owner, _, test = name.partition(".")
        of = [m for m in methods if test == m or test.startswith(m + "_")]
        count[f"{owner}.{max(of, key=len, default=test)}"] += 1
    return sorted(count.items())


def result_of(torches: list[str], kinds: list[str]) -> str:
    """Returns a test's result under each torch, and only one result if all are equal."""
    if len(set(kinds)) == 1:
        return kinds[0]
    return "; ".join(
        f"{', '.join(t for t, k in zip(torches, kinds, strict=True) if k == kind)}: {kind}"
        for kind in dict.fromkeys(kinds)
    )


def write(path: Path, runs: list[dict], reasons) -> list[str]:
    complaints, text, done = [], [], set()
    totals: dict[tuple[str, str], collections.Counter[str]] = {}
    abouts, torches = list(dict.fromkeys(r["about"] for r in runs)), list(dict.fromkeys(r["torch"] for r in runs))
    for number, about in enumerate(abouts, 1):
        of = {r["torch"]: r for r in runs if r["about"] == about}
        methods = sorted({m for r in of.values() for m in r["methods"]})
        names = sorted(
            {n for r in of.values() for n in r["results"]} - done
        )  # a later file's tests count only if they did not pass in an earlier file
        passed, others = [], collections.defaultdict(list)
        for name in names:
            kinds, why = [], ""
            for torch in torches:
                result, said = of[torch]["results"].get(name, ("", "")) if torch in of else ("", "")
                kind = result
                if result == "failed":
                    found = next(((k, sentence) for pattern, k, sentence in reasons if pattern.fullmatch(name)), None)
                    if found is None:
                        complaints.append(f"{name} failed under torch {torch} without a reason: {last_line(said)}")
                        found = ("failed", "?")
                    kind, why = found
                elif result == "skipped":
                    why = why or said.splitlines()[0]
                kinds.append(KINDS.get(kind, "–"))
                totals.setdefault((about, torch), collections.Counter())[kind] += 1
            if set(kinds) == {KINDS["passed"]}:
                passed.append(name)
            else:
                others[(result_of(torches, kinds), why)].append(name)
        done |= set(passed)
        title, _, note = about.partition(". ")
        text += [
            "",
            f"## {number}. {title[0].upper() + title[1:]}",
            "",
            *([note, ""] if note else []),
            f"Passed under torch {', '.join(torches)}:",
            "",
        ]
        owners: dict[str, list[str]] = {}
        for name, n in grouped(passed, methods):
            owner, _, test = name.partition(".")
            owners.setdefault(owner, []).append(f"`{test}`" + (f" ×{n}" if n > 1 else ""))
        text += [f"- {owner}: {', '.join(tests)}" for owner, tests in owners.items()]
        if others:
            text += ["", "| Test | Result | Reason |", "|:---|:---|:---|"]
        for (result, why), tests in sorted(others.items(), key=lambda x: x[1][0]):
            shown = ", ".join(f"`{name}`" + (f" ×{n}" if n > 1 else "") for name, n in grouped(tests, methods))
            text.append(f"| {shown} | {result} | {why.replace('|', chr(92) + '|')} |")
    head = [
        "# torch's own tests on the phantom GPU",
        "",
        "`scripts/test-cuda.sh` runs, of torch's `test/test_cuda.py`, the tests that concern the allocator, streams,",
        "events, graphs and their pools, pinned memory and the memory history, on the phantom GPU, and writes this",
        "list; the reasons are kept in `scripts/test-cuda-reasons.txt`. A test of a later file is listed where the",
        "earlier one has none of that name that passes; ×N: with N sets of parameters.",
        "",
        f"| File | Result | {' | '.join('torch ' + t for t in torches)} |",
        "|:---|:---|" + "---:|" * len(torches),
    ]
    for number, about in enumerate(abouts, 1):
        for kind, title in KINDS.items():
            counts = [totals.get((about, t), collections.Counter())[kind] for t in torches]
            if any(counts):
                head.append(f"| {number} | {title} | {' | '.join(map(str, counts))} |")
    path.write_text("\n".join(head + text) + "\n")
    return complaints


def main() -> None:
    if sys.argv[1] == "run":
        file, about, out, *only = sys.argv[2:]
        import importlib.metadata

        results = run(file, only[0] if only else "")
        methods = re.findall(r"^    def (test_\w+)", Path(file).read_text(), re.M)
        version = importlib.metadata.version("torch")
        Path(out).write_text(
            json.dumps({"torch": version, "about": about, "methods": methods, "results": results}, indent=1)
        )
        return
    reasons, path, *outs = sys.argv[2:]
    complaints = write(Path(path), [json.loads(Path(out).read_text()) for out in outs], read_reasons(Path(reasons)))
    for complaint in complaints:
        print("test_cuda:", complaint, file=sys.stderr)
    if complaints:
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(sys.argv[2], set(json.loads(sys.argv[3])), sys.argv[4])
    else:
        main()
