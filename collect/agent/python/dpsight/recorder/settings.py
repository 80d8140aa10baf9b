"""The settings that the collector gives this process, as environment variables."""

from __future__ import annotations

from collections.abc import Mapping


class Settings:
    """The collector's settings. dpsight.plan() changes the number of warm-up steps."""

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
        self.spool = env.get("DPSIGHT_SPOOL", "")  # folder of the journals; "" = no recording
        # Events that torch keeps between two drains, in a ring that overflows without notice and grows as events come.
        self.max_entries = whole_number(env.get("DPSIGHT_MAX_ENTRIES"), 10_000_000)
        self.alone = env.get("DPSIGHT_ALONE") == "1"  # forked children are not recorded
        self.bare = env.get("DPSIGHT_MODE") == "bare"  # record only counters and times of phases
        self.lines = env.get("DPSIGHT_LINES") != "none"  # follow the script's lines
        self.garbage = env.get("DPSIGHT_GARBAGE", "")  # when to collect garbage; "" = when Python does (garbage.py)
        # The step after which the script is ended; "" = the script ends by itself (step_limit.py).
        self.steps = env.get("DPSIGHT_STEPS", "")
        self.ranks = whole_number(env.get("DPSIGHT_RANKS"), 0)  # ranks that run in a simulated world; 0 = no such world
        self.agreement = env.get("DPSIGHT_AGREEMENT", "")  # the file in which ranks agree on their last step
        self.source = env.get("DPSIGHT_SOURCE") or "measured"
        # Tests use this to make the phantom GPU behave like a GPU: some steps are bare, and nothing looks at the script
        # between its lines, since the number of such looks would depend on time.
        self.like_a_gpu = env.get("DPSIGHT_LIKE_A_GPU") == "1"
        # Without real times to protect, every step is instrumented.
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
