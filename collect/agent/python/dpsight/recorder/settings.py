"""What the collector asked of this process, by environment variables."""

from __future__ import annotations

from collections.abc import Mapping


class Settings:
    """The collector's wishes. plan() changes how many steps warm up."""

    __slots__ = (
        "agreement",
        "alone",
        "bare",
        "every_step",
        "garbage",
        "like_a_gpu",
        "lines",
        "max_entries",
        "ranks",
        "record_steps",
        "source",
        "spool",
        "stack_steps",
        "steps",
        "warmup",
        "window_steps",
    )

    def __init__(self, env: Mapping[str, str]) -> None:
        self.spool = env.get("DPSIGHT_SPOOL", "")  # the folder of the journals; "" = no recording
        # Events that torch keeps between two drains. Its ring overflows silently, and takes memory only as they come.
        self.max_entries = whole_number(env.get("DPSIGHT_MAX_ENTRIES"), 10_000_000)
        self.alone = env.get("DPSIGHT_ALONE") == "1"  # a forked child is not recorded
        self.bare = env.get("DPSIGHT_MODE") == "bare"  # counters and times of phases only
        self.lines = env.get("DPSIGHT_LINES") != "none"  # of the script are followed
        self.garbage = env.get("DPSIGHT_GARBAGE", "")  # when it is collected; "" = when Python does it (garbage.py)
        # After which step the script is ended: "" = it ends by itself; see step_limit.py.
        self.steps = env.get("DPSIGHT_STEPS", "")
        self.ranks = whole_number(env.get("DPSIGHT_RANKS"), 0)  # that run in a simulated world; 0 = there is none
        self.agreement = env.get("DPSIGHT_AGREEMENT", "")  # the file in which ranks agree on their last step
        self.source = env.get("DPSIGHT_SOURCE") or "measured"
        # Tests of GPU behaviour make a phantom behave like a GPU: some of its steps are bare, and nothing looks at
        # the script between its lines, since how often depends on time.
        self.like_a_gpu = env.get("DPSIGHT_LIKE_A_GPU") == "1"
        # Without times to protect, every step is instrumented.
        self.every_step = self.source != "measured" and not self.like_a_gpu
        self.warmup = whole_number(env.get("DPSIGHT_WARMUP"), 3)
        self.record_steps = whole_number(env.get("DPSIGHT_RECORD_STEPS"), 100)
        # Steps of each later window; 0 = there are no later windows.
        self.window_steps = whole_number(env.get("DPSIGHT_WINDOW_STEPS"), 10)
        stacks = env.get("DPSIGHT_STACKS") == "python"
        self.stack_steps = whole_number(env.get("DPSIGHT_STACK_STEPS"), 3) if stacks else 0


def whole_number(text: str | None, default: int) -> int:
    """The whole number that text holds, or default."""
    try:
        return max(0, int(text or ""))
    except ValueError:
        return default
