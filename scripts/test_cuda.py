"""torch's own tests of its CUDA memory on the phantom GPU: test_cuda.py FILE REASONS LIST.

FILE is torch's test/test_cuda.py of the version that runs. Those of its tests that concern the allocator, streams,
events, graphs and their pools, pinned memory and the memory history run, one after another in one process, anew after
one that hangs or ends it; what fails runs again in a process of its own, since a test that failed leaves memory behind.
LIST is written: each test with its result, and REASONS has one for each that does not pass. A failure without a reason
is an error.
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

# Of the classes about kernels' results nothing is run; of the others, what the name says is about memory and order.
CLASSES = re.compile(r"Optims|Autocast|GDS|CompileKernel|Parametrized")
NAMES = re.compile(
    r"memory|alloc|stream|event|graph|pinned|mempool|pool\b|snapshot|history|segment|out_of_memory|oom|cudart|cache|block"
    r"|non_blocking|workspace|leak|trace|plot|gc_|garbage|expandable|_raises_|rounding|free|fragment|checkpoint_state"
)
SECONDS = 300  # for one test; most take under one, and a busy machine takes its time


def cases(suite):
    import unittest

    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        else:
            yield one


def child(file: str, done: set[str], only: str) -> None:
    import importlib.util
    import unittest

    import torch

    sys.path.insert(0, os.environ["PHANTOM_MODULE"])
    import phantom_values

    phantom_values.install(torch)
    sys.argv = [file]
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
            if not CLASSES.search(value.__name__):
                chosen += cases(unittest.defaultTestLoader.loadTestsFromTestCase(value))
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
        elif problems:
            say(test=key, result="failed", why=problems[0][1])
        else:
            say(test=key, result="passed", why="")
    say(end=True)


def run(file: str, only: str) -> dict[str, tuple[str, str]]:
    """The results by name, with what torch said of those that did not pass."""
    results = run_together(file, only)
    for name in [name for name, (result, _) in results.items() if result == "failed"]:
        results |= run_together(file, f"^{re.escape(name)}$")
    return results


def run_together(file: str, only: str) -> dict[str, tuple[str, str]]:
    results: dict[str, tuple[str, str]] = {}
    while True:
        process = subprocess.Popen(
            [sys.executable, __file__, "--child", file, json.dumps(sorted(results)), only],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
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
    """Lines of a pattern of names, "values" or "failed", and a sentence, apart by tabs."""
    reasons = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, kind, sentence = line.split("\t")
            reasons.append((re.compile(pattern), kind, sentence))
    return reasons


def last_line(why: str) -> str:
    lines = why.split("\nTo execute this test")[0].strip().splitlines()
    return lines[-1] if lines else why


def write(path: Path, about: str, results: dict[str, tuple[str, str]], reasons) -> list[str]:
    complaints, rows = [], collections.defaultdict(list)
    for name, (result, why) in sorted(results.items()):
        if result == "skipped":
            rows["skipped"].append((name, why.splitlines()[0]))
            continue
        found = next(((kind, sentence) for pattern, kind, sentence in reasons if pattern.fullmatch(name)), None)
        if result == "passed":
            rows["passed"].append((name, ""))
        elif found is None:
            complaints.append(f"{name} failed without a reason: {last_line(why)}")
            rows["failed"].append((name, "?"))
        else:
            rows[found[0]].append((name, found[1]))
    titles = {
        "passed": "Passed",
        "values": "Need computed values",
        "failed": "Failed",
        "skipped": "Skipped by torch",
    }
    text = [
        "# torch's own tests on the phantom GPU",
        "",
        f"`scripts/test-cuda.sh` runs, of torch's `test/test_cuda.py` ({about}), the tests that concern the",
        "allocator, streams, events, graphs and their pools, pinned memory and the memory history. It wrote this list;",
        "the reasons are kept in `scripts/test-cuda-reasons.txt`.",
        "",
        "| Result | Tests |",
        "|:---|---:|",
        *[f"| {titles[kind]} | {len(rows[kind])} |" for kind in titles],
    ]
    for kind, title in titles.items():
        if not rows[kind]:
            continue
        text += ["", f"## {title}", ""]
        if kind == "passed":
            text += [f"- `{name}`" for name, _ in rows[kind]]
        else:
            text += ["| Test | Reason |", "|:---|:---|"]
            text += [f"| `{name}` | {sentence.replace('|', chr(92) + '|')} |" for name, sentence in rows[kind]]
    path.write_text("\n".join(text) + "\n")
    return complaints


def main() -> None:
    file, reasons, path, *only = sys.argv[1:]
    import importlib.metadata

    results = run(file, only[0] if only else "")
    if os.environ.get("TEST_CUDA_WHY"):
        Path(os.environ["TEST_CUDA_WHY"]).write_text(json.dumps(results, indent=1))
    about = f"of {os.environ.get('TEST_CUDA_TAG', Path(file).name)}, under torch {importlib.metadata.version('torch')}"
    complaints = write(Path(path), about, results, read_reasons(Path(reasons)))
    for complaint in complaints:
        print("test_cuda:", complaint, file=sys.stderr)
    if complaints:
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(sys.argv[2], set(json.loads(sys.argv[3])), sys.argv[4])
    else:
        main()
