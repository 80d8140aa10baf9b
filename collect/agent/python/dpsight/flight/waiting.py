"""Runs callbacks right after a module has been executed, in a process that dpsight did not start. sitecustomize.py does
the same in processes that dpsight starts. That file may import nothing, while this module is imported normally."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Waiting:
    """An import finder that finds no modules itself. Waiting lets the other finders find a module, and notices when the
    module has been executed."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Callable[[Any], None]] = {}
        self._looking: set[str] = set()

    def install(self) -> None:
        """Begins to observe imports."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        """Stops observing imports."""
        self.callbacks.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Returns what the other finders find. If a callback waits for the module, its loader is changed to report the
        module."""
        if name not in self.callbacks or name in self._looking:
            return None
        self._looking.add(name)
        try:
            finders = [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]
            spec = next((s for s in (f.find_spec(name, path, target) for f in finders) if s is not None), None)
        finally:
            self._looking.discard(name)
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if spec is None or execute is None:
            return spec

        def exec_module(module: Any) -> None:
            vars(spec.loader).pop("exec_module", None)  # the loader is restored
            execute(module)
            callback = self.callbacks.pop(name, None)
            if callback is not None:
                callback(module)

        try:
            spec.loader.exec_module = exec_module
        except (AttributeError, TypeError):
            self.callbacks.pop(name, None)
        return spec


waiting = Waiting()
