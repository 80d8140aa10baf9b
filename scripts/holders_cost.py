"""Measures what the agent's looks cost a script with many Python objects. In a look the agent searches for what keeps
tensors alive. Prints the time of the longest look, and the share of the script's time that all looks took.

    python3 scripts/holders_cost.py --dpsight ./dpsight --python PYTHON [--objects N] [--seconds S]

The script trains a small model on the phantom GPU, keeps one more result at each step, and also holds N objects. The
script runs twice: first as a prediction, in which the number of looks is limited, then as on a GPU, where looks are
limited to a share of the time. Each line has the longest look in processor seconds, the number of looks, and their
share of the time.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def train(objects: int, seconds: float, like_a_gpu: bool) -> None:
    """The recorded script: trains for the given seconds, and prints the time of its looks."""
    import torch
    from dpsight.holders import keepers
    from dpsight.recorder import recorder

    if like_a_gpu:
        recorder.settings.like_a_gpu, recorder.settings.every_step = True, False
    took: list[float] = []
    look = keepers.keepers.look

    def timed(*arguments: object) -> None:
        before = time.process_time()
        look(*arguments)
        took.append(time.process_time() - before)

    keepers.keepers.look = timed
    beside = [[[]] for _ in range(objects // 2)]
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(20))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    began, cpu = time.monotonic(), time.process_time()
    steps = 0
    while time.monotonic() - began < seconds:
        out = model(torch.randn(32, 64, device="cuda"))
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(out.detach())
        steps += 1
        time.sleep(0.01)  # stands for a GPU's work
    share = sum(took) / (time.process_time() - cpu + 0.01 * steps)
    print(f"objects {len(gc.get_objects())}, steps {steps}, looks {len(took)}, kept {len(kept)}, beside {len(beside)}")
    print(f"longest look {max(took):.3f} s, all of them {100 * share:.2f} % of the time")


def main() -> None:
    """Runs the script as a prediction and as on a GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dpsight", default="./dpsight")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--recorded", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--like-a-gpu", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.recorded:
        train(args.objects, args.seconds, args.like_a_gpu)
        return
    script = [str(Path(__file__).resolve()), "--recorded", f"--objects={args.objects}", f"--seconds={args.seconds}"]
    for kind, more in (("prediction", []), ("as on a GPU", ["--like-a-gpu"])):
        with tempfile.TemporaryDirectory() as store:
            command = [args.dpsight, "collect", "--device", "phantom", "--store", store, "--", args.python]
            done = subprocess.run([*command, *script, *more], capture_output=True, text=True, check=True)
        for line in (done.stdout + done.stderr).splitlines():
            if line.startswith(("objects", "longest")):
                print(f"{kind}: {line}")


if __name__ == "__main__":
    main()
