"""The agent's functions for training scripts. If no agent is there, they do nothing.

The functions are imported instead of the module: Python would import any folder named dpsight on the path as an empty
package.
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
        """Ends a training step that had this many samples and tokens."""


__all__ = ["config", "phase", "plan", "step"]
