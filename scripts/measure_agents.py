"""Compares what a step costs the host under two versions of the agent, on the phantom GPU or, without its launcher, on
a GPU:

    go run ./scripts/onphantom PYTHON scripts/measure_agents.py OLD/python NEW/python
    PYTHON scripts/measure_agents.py OLD/python NEW/python

Both versions record the same small model, each in its own process. The processes live at the same time and take turns,
a block of steps each in random order, so a slower period of the host affects both. On the phantom GPU the module that
follows small values is left out: it makes predictions wait for autograd's threads, and recordings never wait so. The
processor time of all threads is measured for each block, since wall time includes the host's other load. The output is
the median over blocks of the new agent's time relative to the old agent's, with the interval that holds 95 % of the
resampled medians. With `train` this file is the script that trains."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

# The kinds of steps, each with the environment variables that make all later steps of a run that kind.
KINDS = {
    "instrumented": {"DPSIGHT_SOURCE": "predicted", "DPSIGHT_WARMUP": "1000000", "DPSIGHT_RECORD_STEPS": "1000000"},
    "bare": {"DPSIGHT_SOURCE": "predicted", "DPSIGHT_RECORD_STEPS": "10", "DPSIGHT_WINDOW_STEPS": "0"},
    "unphased": {"DPSIGHT_SOURCE": "measured", "DPSIGHT_RECORD_STEPS": "10", "DPSIGHT_WINDOW_STEPS": "0"},
}
WARM_UP = 60  # steps


def train() -> None:
    """Trains a block whenever a line arrives, and answers with its processor time."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(100, 64), nn.TransformerEncoder(layer, 4), nn.Linear(64, 100)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(100, (4, 16)).to("cuda")

    def steps(n: int) -> None:
        for _ in range(n):
            optimizer.zero_grad()
            logits = model(ids)
            nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
            del logits
            optimizer.step()

    steps(WARM_UP)
    print("READY", flush=True)
    for line in sys.stdin:
        began = time.process_time_ns()
        steps(int(line))
        print(f"TOOK {time.process_time_ns() - began}", flush=True)


class Training:
    """A process that trains under one version of the agent."""

    def __init__(self, agent: str, kind: str, folder: str) -> None:
        env = {k: v for k, v in os.environ.items() if not k.startswith("DPSIGHT_")}
        env.update(KINDS[kind], PYTHONPATH=os.path.abspath(agent), PYTHONDONTWRITEBYTECODE="1", DPSIGHT_SPOOL=folder)
        command = [sys.executable, os.path.abspath(__file__), "train"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True)
        self._until("READY")

    def _until(self, word: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line
        raise SystemExit(f"the training ended early, with {self._process.wait()}")

    def block(self, steps: int) -> float:
        """Trains one block, and returns its microseconds per step."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return int(self._until("TOOK").split()[1]) / steps / 1e3

    def end(self) -> None:
        """Lets the process end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(kind: str, agents: list[str], blocks: int, steps: int, rng: random.Random) -> list[list[float]]:
    """Returns the microseconds per step of each agent's blocks. The two blocks of a pair follow each other."""
    with tempfile.TemporaryDirectory() as folder:
        trainings = [Training(agent, kind, os.path.join(folder, str(i))) for i, agent in enumerate(agents)]
        taken: list[list[float]] = [[], []]
        for _ in range(blocks):
            for i in rng.sample((0, 1), 2):
                taken[i].append(trainings[i].block(steps))
        for training in trainings:
            training.end()
    return taken


def interval(ratios: list[float], rng: random.Random) -> tuple[float, float]:
    """Returns the interval that holds 95 % of the medians of resampled ratios."""
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="+", metavar="AGENT", help="folders of the two agents, old and new")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--blocks", type=int, default=60, help="blocks of each agent and kind of step")
    parser.add_argument("--steps", type=int, default=25, help="steps in a block")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.agents == ["train"]:
        train()
        return
    rng = random.Random(options.seed)
    for kind in options.kinds:
        old, new = compare(kind, options.agents, options.blocks, options.steps, rng)
        ratios = [b / a for a, b in zip(old, new, strict=True)]
        low, high = interval(ratios, rng)
        result = {
            "kind": kind,
            "steps": options.blocks * options.steps,
            "old_us": round(statistics.median(old), 1),
            "new_us": round(statistics.median(new), 1),
            "ratio": round(statistics.median(ratios), 4),
            "interval": [round(low, 4), round(high, 4)],
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
