"""Which optimizer's update ends a step. If there are several optimizers, as in GANs, it is the optimizer that updates
least often, and among equals the latest. The choice is made during warm-up, since a later change would switch modes
within a step. A new optimizer begins warm-up again. An optimizer that is no longer used, as in training in stages, is
forgotten."""

from __future__ import annotations

from collections.abc import Hashable


class Boundary:
    """Counts the updates of each optimizer."""

    __slots__ = ("_most", "_since", "key", "updates")

    def __init__(self) -> None:
        self.key: Hashable = None  # the optimizer whose updates end steps
        self.updates: dict[Hashable, int] = {}  # updates of each optimizer
        self._since = 0  # updates of other optimizers since the last one of the chosen optimizer
        self._most = 0  # the highest value of _since so far

    def is_new(self, key: Hashable) -> bool:
        """Whether this is the first update of an optimizer, and another optimizer has updated before. Call this before
        ends_step."""
        return key not in self.updates and self.key is not None

    def is_alone(self, key: Hashable) -> bool:
        """Whether every update so far was made by this optimizer."""
        return len(self.updates) == 1 and key == self.key

    def ends_step(self, key: Hashable, warming: bool) -> bool:
        """Counts an update. Returns whether a step has ended with it."""
        counts = self.updates
        new = key not in counts
        counts[key] = counts.get(key, 0) + 1
        if new or warming:
            best = key
            for k, n in list(counts.items()):
                if n <= counts[best]:
                    best = k
            if best != self.key:
                self._choose(best)
        if key != self.key:
            self._since += 1
            if self._since <= 2 * self._most + 1:
                return False
            counts.pop(self.key, None)
            self._choose(key)
        self._most = max(self._most, self._since)
        self._since = 0
        return True

    def _choose(self, key: Hashable) -> None:
        self.key = key
        self._most = sum(n for k, n in list(self.updates.items()) if k != key)
