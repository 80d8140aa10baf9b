"""A script that calls the whole API. mypy --strict checks it in make lint, and make test runs it unrecorded."""

from __future__ import annotations

import dpsight


@dpsight.phase("augment")
def doubled(value: int) -> int:
    return 2 * value


def tables(store: str) -> list[str]:
    return dpsight.open(store).tables


def fits(script: str) -> bool:
    prediction = dpsight.predict(script, "--epochs", "1", device="t4")
    largest: int = max(prediction.breakdown.values())
    return bool(prediction.fits) and largest > 0


def main() -> int:
    steps: int = dpsight.plan(warmup=1, timed=2)
    dpsight.config(lr=0.1)
    with dpsight.phase("setup.data") as phase:
        name: str = phase.name
    dpsight.tag([name], "activations", "cache")
    dpsight.mark("epoch 1")
    dpsight.metric("loss", 0.3)
    dpsight.step(samples=32, tokens=4096)
    dpsight.step()
    return doubled(steps)


if __name__ == "__main__":
    assert main() == 6
