"""The agent's API, or no-ops where the experiment runs on its own.

The names are imported, not the module: any folder called dpsight on the path would be imported as an empty package.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

try:
    from dpsight import config, phase, plan, step
except ImportError:

    def config(**params: Any) -> None:
        """Reports facts about the run."""

    def phase(name: str) -> AbstractContextManager[None]:
        """Marks a phase of the run, such as setup.model."""
        return nullcontext()

    def plan(*, warmup: int, timed: int) -> int:
        """Returns the number of steps to train."""
        return warmup + timed

    def step(samples: int | None = None, tokens: int | None = None) -> None:
        """Ends a training step of that many samples and tokens."""


__all__ = ["config", "phase", "plan", "step"]
