"""Attaches to this process, dumps and detaches. A process has one recorder. Only one thread at a time begins or ends
the recorder or writes a run."""

from __future__ import annotations

import _signal
import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from dpsight import agent, kinds
from dpsight.client.program import find
from dpsight.flight import run
from dpsight.flight.existing import Found, tag_existing
from dpsight.flight.sampler import Sampler
from dpsight.flight.settings import Wishes
from dpsight.flight.waiting import waiting
from dpsight.holders.keepers import keepers
from dpsight.holders.look import tag
from dpsight.interruptions import uninterrupted
from dpsight.journal import RECORD
from dpsight.recorder import drains, events, in_backward, recorder, thread
from dpsight.recorder.counters import devices
from dpsight.tensors import living

_MIB = 1 << 20
_SIGNAL = int(getattr(_signal, "SIGUSR2", 0))
_OVER = 2  # at so many times its largest size the journal takes nothing more, if recording could not start over before
_FOLDERS = "dpsight-attached-"


class Flight:
    """The recorder of this process, as dpsight.attach() returns it. A with statement detaches it at the end."""

    def __init__(self, wishes: Wishes, in_place: Callable[[bool], None]) -> None:
        self.runs: list[Path] = []  # folders of the runs that were written
        self.found = Found(0, 0, 0)
        self.untraced = 0  # bytes that were allocated before recording began
        self._wishes = wishes
        self._in_place = in_place  # called when the agent is installed or removed
        self.pid = os.getpid()  # a forked child inherits this object, but has no recorder
        self._scratch = ""
        self._since_ns = time.time_ns()
        self._failures = 0  # requests whose errors reached the script
        self._generation = 0
        self._full = False
        self._sampler = Sampler()
        self._handler: Any = None  # the script's handler for SIGUSR2
        self._ours: Any = None
        self._lock = threading.RLock()

    # Beginning and end.

    def begin(self) -> None:
        """Begins to record, now or once torch is imported."""
        if "torch" in sys.modules:
            self.torch_is_there(sys.modules["torch"])
        else:
            waiting.install()
            waiting.callbacks["torch"] = self._torch_imported

    def _torch_imported(self, torch: Any) -> None:
        """Begins to record. An error here must not end a program that only imports torch."""
        try:
            self.torch_is_there(torch)
        except Exception as error:
            say(f"{error}")

    def torch_is_there(self, torch: Any) -> None:
        """Begins to record. Raises RuntimeError if this torch cannot be recorded."""
        if problem := agent.why_not(torch):
            raise RuntimeError(problem)
        _sweep()
        self._scratch = tempfile.mkdtemp(prefix=f"{_FOLDERS}{self.pid}-{_started(self.pid)}-")
        waiting.install()
        try:
            with self._lock:
                self._install(torch)
        except BaseException:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = ""
            raise
        self._sampler.begin()
        atexit.register(self._at_exit)
        self._take_signal()
        self._tell()

    def _install(self, torch: Any) -> None:
        """Begins to record. Starting over works in the same way."""
        self._generation += 1
        spool = os.path.join(self._scratch, str(self._generation))
        recorder.begin_anew(self._wishes.settings(spool, os.environ))
        try:
            agent.install(torch, waiting.callbacks)
            self._in_place(True)
        except Exception:
            agent.uninstall()
            raise
        events.request_failed.subscribe(self._request_failed)
        events.counters_written.subscribe(self._look)
        events.step_begins.subscribe(self._between)
        events.model_called.subscribe(self._between)
        events.cuda_ready.subscribe(self._cuda_ready)
        if recorder.cuda:
            self._cuda_ready()

    def _cuda_ready(self) -> None:
        self.untraced = sum(s["stats"]["allocated_bytes.all.current"] for s in devices.counters([], all_devices=True))
        with uninterrupted:
            self.found = tag_existing()

    def _tell(self) -> None:
        wishes = self._wishes
        before = ""
        if self.untraced:
            before = (
                f"; {self.untraced / _MIB:,.2f} MiB were allocated before. They are untraced, except the tensors of "
                f"{self.found.models} models and {self.found.optimizers} optimizers, and tensors with a name"
            )
        say(
            f"attached to process {self.pid}: torch keeps at most {wishes.events:,} events "
            f"({wishes.ring_bytes / _MIB:,.0f} MiB of host memory), the journal at most "
            f"{wishes.journal_bytes / _MIB:,.0f} MiB on disk{before}"
        )

    def end(self) -> None:
        """Removes the agent and everything it has changed."""
        with self._lock:
            self._give_signal_back()
            atexit.unregister(self._at_exit)
            waiting.uninstall()
            if not self._scratch:
                return
            agent.uninstall()
            self._in_place(False)
            if os.getpid() == self.pid:
                self._sampler.end()
                shutil.rmtree(self._scratch, ignore_errors=True)

    def _at_exit(self) -> None:
        if os.getpid() == self.pid:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Flight:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        detach()

    # Limits.

    @property
    def began_anew(self) -> int:
        """How often recording started over because its journal was full."""
        return max(0, self._generation - 1)

    def journal_bytes(self) -> int:
        """The size of the journal on disk."""
        journal = recorder.journal
        if journal is None:
            return 0
        with contextlib.suppress(OSError):
            return os.stat(f"{journal.base}.frames").st_size + journal.records * RECORD
        return 0

    def _look(self) -> None:
        """Checks the size of the journal whenever events were added to it."""
        size = self.journal_bytes()
        self._full = size > self._wishes.journal_bytes
        if size > _OVER * self._wishes.journal_bytes:
            recorder.failed("keeping the journal small", RuntimeError("no step ended, and no model was called"))

    def _between(self, *_: Any) -> None:
        """Starts over if the journal is full: between two steps or, in a process that does not train, when a model is
        called."""
        if self._full and not in_backward() and not thread.spans[1:]:
            self._full = False
            with self._lock, uninterrupted, drains.left_alone():
                self._begin_anew()

    def _begin_anew(self) -> None:
        old = os.path.join(self._scratch, str(self._generation))
        torch = recorder.torch
        agent.uninstall()
        shutil.rmtree(old, ignore_errors=True)
        self._install(torch)

    # Runs.

    def _request_failed(self) -> None:
        """Called when the error of a failed request is about to reach the script, which may catch it and continue."""
        self._failures += 1
        more = self._failures - self._wishes.dumps
        if more <= 0 or more & (more - 1) == 0:
            self.dump("a request for memory failed", failed=True, wait=False)

    def dump(self, reason: str, failed: bool = False, wait: bool = True) -> Path | None:
        """Writes a run with what was recorded so far."""
        with self._lock, uninterrupted:
            if not recorder.level or recorder.journal is None:
                return None
            if not failed and recorder.cuda:
                recorder.mark(kinds.SURVEY, a=tag(True, living()))
                keepers.look("survey")
            drains.drain("request")
            last = recorder.mark(kinds.USER_MARK, 0, recorder.name("dpsight.dump"))
            name = self._wishes.name or run.name_of_process()
            folder = run.new_folder(self._wishes.store, name)
            try:
                run.copy_journal(folder, last)
                self._sampler.take()
                run.write_samples(folder, self._sampler.taken())
                said = {"name": name, "status": "oom" if failed else "ok", "reason": reason if failed else ""}
                run.write_manifest(folder, said, self._since_ns, self._sampler, self._facts(reason))
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)  # an incomplete run is not kept
                raise
            self.runs.append(folder)
        finished = _finish(folder, wait)
        say(f"{reason}: wrote {folder}" + ("" if finished else f"; dpsight ingest {folder} makes its tables"))
        return folder

    def _facts(self, reason: str) -> dict[str, Any]:
        wishes = self._wishes
        return {
            "reason": reason,
            "pid": self.pid,
            "began_anew": self.began_anew,
            "events": wishes.events,
            "ring_bytes": wishes.ring_bytes,
            "journal_bytes": wishes.journal_bytes,
            "untraced_bytes": self.untraced,
            "models": self.found.models,
            "optimizers": self.found.optimizers,
        }

    # The signal.

    def _take_signal(self) -> None:
        if not self._wishes.signals or not _SIGNAL:
            return
        if threading.current_thread() is not threading.main_thread():
            say("SIGUSR2 writes no run: attach from the main thread, where Python can set its handler")
            return
        self._handler = _signal.getsignal(_SIGNAL)
        self._ours = self._signalled
        _signal.signal(_SIGNAL, self._ours)

    def _signalled(self, number: int, frame: Any) -> None:
        try:
            self.dump("SIGUSR2", wait=False)
        except Exception as error:
            recorder.spared("writing a run", error)
        if callable(self._handler):
            self._handler(number, frame)

    def _give_signal_back(self) -> None:
        if self._ours is None or threading.current_thread() is not threading.main_thread():
            return
        if _signal.getsignal(_SIGNAL) is self._ours:
            _signal.signal(_SIGNAL, self._handler if self._handler is not None else _signal.SIG_DFL)
        self._ours = None


class Current:
    """The recorder that is attached to this process."""

    def __init__(self) -> None:
        self.flight: Flight | None = None
        self.lock = threading.RLock()


_current = Current()


def attach(wishes: Wishes, in_place: Callable[[bool], None]) -> Flight:
    """Attaches a recorder, or returns the attached one."""
    with _current.lock:
        if _current.flight is not None and _current.flight.pid != os.getpid():
            detach()  # in a forked child, the parent's recorder
        if _current.flight is not None:
            return _current.flight
        if os.environ.get("DPSIGHT_SPOOL"):
            raise RuntimeError("dpsight.attach: dpsight collect already records this process")
        flight = Flight(wishes, in_place)
        flight.begin()
        _current.flight = flight
        return flight


def dump(reason: str, wait: bool) -> Path | None:
    """Writes a run if a recorder is attached."""
    flight = _current.flight
    return flight.dump(reason, wait=wait) if flight is not None else None


def detach() -> None:
    """Detaches the recorder if one is attached."""
    with _current.lock:
        flight, _current.flight = _current.flight, None
        if flight is not None:
            flight.end()


def say(text: str) -> None:
    """Prints a message to stderr."""
    sys.stderr.write(f"dpsight: {text}\n")


def _finish(folder: Path, wait: bool) -> bool:
    """Makes the program write the run's tables, in a process that outlives this one. Returns False if the program is
    missing or fails."""
    try:
        command = [find(), "ingest", os.fspath(folder)]
    except FileNotFoundError:
        return False
    # Without the variables with which a phantom GPU changes every process, and without those meant for this process.
    ours = ("LD_PRELOAD", "LD_LIBRARY_PATH")
    env = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith(("DPSIGHT_", "PHANTOM_"))}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        if wait:
            return subprocess.run(command, env=env, **quiet, check=False).returncode == 0  # type: ignore[call-overload]
        # The shell ends at once, so this process need not wait for the program and gets no signal when it ends.
        detached = ["/bin/sh", "-c", '"$@" &', "sh", *command]
        subprocess.run(detached, env=env, **quiet, start_new_session=True, check=False)  # type: ignore[call-overload]
    except OSError as error:
        recorder.spared("making the tables of a run", error)
        return False
    return True


def _started(pid: int) -> str:
    """When a process started, by the kernel's clock; "" if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _sweep() -> None:
    """Removes the journals of processes that were killed."""
    parent = Path(tempfile.gettempdir())
    for folder in parent.glob(f"{_FOLDERS}*"):
        pid, _, rest = folder.name.removeprefix(_FOLDERS).partition("-")
        if pid.isdecimal() and _started(int(pid)) != rest.partition("-")[0]:
            shutil.rmtree(folder, ignore_errors=True)
