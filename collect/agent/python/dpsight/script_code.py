"""Records the files of the user's own code that this process ran: the script, and modules from its repository or from a
folder that the user named (PYTHONPATH, an editable install). Each file's contents are hashed as early as possible,
since a user may edit the script during a long training. The standard library and installed packages are not read: their
versions identify them.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from dpsight import kinds
from dpsight.recorder import events, recorder

MAIN = "__main__"
COMMAND_TEXT = "-c"
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_GENERATED = "torchinductor_"  # torch.compile's default folder for generated code is this and the user's name
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


class ScriptCode:
    """The files found so far. A forked child keeps them, since it shares its parent's imports."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, Any]] = {}  # by module and path
        self._written = (0, 0)  # how many files were written, and in which process's journal
        self._began = 0
        self._folder = ""
        self._not_own: tuple[str, ...] = ()
        self._names: dict[str, str] = {}  # results of name_of, which has to ask the file system

    def install(self) -> None:
        """Reads the modules that were imported so far. The modules are read again when recording begins, after the
        first step and at the end."""
        self._began, self._written = _process_start_ns(), (0, 0)
        try:
            self._folder = os.getcwd()  # scripts may change it later, while relative paths refer to this folder
        except OSError:
            self._folder = os.sep
        agent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.__file__)}
        plugins = os.environ.get("DPSIGHT_PLUGIN", "").split(os.pathsep)
        ours = {agent, *(os.path.dirname(os.path.abspath(path)) for path in plugins if path)}
        torch = os.path.dirname(os.path.abspath(getattr(recorder.torch, "__file__", agent)))
        generated = (os.path.abspath(path) for path in map(os.environ.get, _CACHES) if path)
        self._not_own = tuple(os.path.join(path, "") for path in (*ours, torch, *standard, *generated) if path)
        self._read()
        events.journal_opened.subscribe(self._write)
        events.step_ended.subscribe(self._step_ended)
        events.process_ends.subscribe(self._write)

    def _step_ended(self, number: int) -> None:
        if number == 1:
            self._write()

    def _write(self) -> None:
        """Writes everything known, if that is more than was written before. A later frame replaces an earlier one."""
        self._read()
        now = (len(self._known), recorder.pid)
        if self._known and now != self._written:
            self._written = now
            recorder.frame(kinds.FRAME_CODE, {"files": list(self._known.values())})

    def _read(self) -> None:
        try:
            if COMMAND_TEXT in getattr(sys, "orig_argv", ()) and self._path_of(sys.modules.get(MAIN)) is None:
                self._read_command_text()
            for module, path, root in self._own_files():
                if (module, path) not in self._known:
                    self._known[module, path] = self._entry(module, path, root)
        except Exception as error:
            recorder.spared("noting which code the script is", error)

    def _read_command_text(self) -> None:
        """Reads the text after -c, which is the script if the script is no file."""
        text = sys.orig_argv[sys.orig_argv.index(COMMAND_TEXT) + 1]
        digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
        self._known[MAIN, COMMAND_TEXT] = {"module": MAIN, "file": COMMAND_TEXT, "sha256": digest, "changed": False}

    def _entry(self, module: str, path: str, root: str) -> dict[str, Any]:
        """The record of one file, without a hash if the file may have changed since the process started."""
        name = os.path.relpath(path, root).encode(errors="backslashreplace").decode()
        entry = {"module": module, "file": name, "sha256": None, "changed": False}
        try:
            with open(path, "rb") as file:
                contents = file.read()
                entry["changed"] = os.fstat(file.fileno()).st_mtime_ns > self._began
        except OSError:
            return entry
        if not entry["changed"]:
            entry["sha256"] = hashlib.sha256(contents).hexdigest()
        return entry

    def _own_files(self) -> Iterator[tuple[str, str, str]]:
        """Yields the module, the path and the repository of each of the user's own files, the script first."""
        main = sys.modules.get(MAIN)
        script = self._path_of(main)
        roots = self._roots(script)
        for name, module in [(MAIN, main), *sorted(sys.modules.copy().items())]:
            path = self._path_of(module)
            if path is None or (module is main and name != MAIN) or name.startswith("dpsight_plugin_"):
                continue
            root = next((root for root in roots if path.startswith(root)), None)
            if root is not None and not self._installed(path):
                yield name, path, root

    def _roots(self, script: str | None) -> list[str]:
        """The repositories of the script and of each folder from which modules are imported, the innermost first."""
        folders = [os.path.abspath(os.path.join(self._folder, path)) for path in sys.path]
        if script is not None and not any(script.startswith(os.path.join(path, "")) for path in folders):
            folders.append(os.path.dirname(script))  # python -P leaves it out, or the script has changed sys.path
        own = {_repository(path) for path in folders if os.path.isdir(path) and not self._installed(path)}
        return sorted((os.path.join(path, "") for path in own), key=len, reverse=True)

    def _path_of(self, module: ModuleType | None) -> str | None:
        """The file of a module. sys.modules may contain any objects."""
        path = getattr(module, "__dict__", {}).get("__file__")
        return os.path.abspath(os.path.join(self._folder, path)) if isinstance(path, str) else None

    def is_own(self, path: str) -> bool:
        """Whether code from this path is the user's own: the path is in one of the user's folders, or is the text after
        -c, and is not installed."""
        if path.startswith("<"):
            return path == "<string>" and (MAIN, COMMAND_TEXT) in self._known
        return not self._installed(os.path.abspath(os.path.join(self._folder, path)))

    def name_of(self, path: str) -> str:
        """The name of a file among the files of the code: relative to its repository, or else the path itself."""
        if path.startswith("<"):
            return COMMAND_TEXT if self.is_own(path) else path
        if path not in self._names:
            whole = os.path.abspath(os.path.join(self._folder, path))
            root = next((r for r in self._roots(self._path_of(sys.modules.get(MAIN))) if whole.startswith(r)), None)
            name = os.path.relpath(whole, root) if root else whole
            self._names[path] = name.encode(errors="backslashreplace").decode()
        return self._names[path]

    def _installed(self, path: str) -> bool:
        """Whether a file is not the user's own, because it is installed or a compiler wrote it."""
        if os.path.join(path, "").startswith(self._not_own):
            return True
        folders = path.split(os.sep)
        return not _INSTALLED.isdisjoint(folders) or any(folder.startswith(_GENERATED) for folder in folders)


def _repository(folder: str) -> str:
    """The repository that contains a folder, or else the folder."""
    at = folder
    while not os.path.exists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return folder
        at = above
    return at


def _process_start_ns() -> int:
    """When this process began, by the clock of files, or the present time if the system does not tell."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time_ns() - max(int(age * 1e9), 0)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time_ns()


script_code = ScriptCode()
