"""Runs a command once for each of several ranks: phantom_launch.py NAME=VALUE,…;NAME=VALUE,… COMMAND…

The ranks do not talk to each other, so at most as many run at a time as there are processors. Each prints where
this process prints. The exit code comes from the rank that failed first. The collector reports that rank's
exception.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def run(variables: str, command: list[str]) -> int:
    env = {**os.environ, **dict(pair.split("=", 1) for pair in variables.split(","))}
    code = subprocess.call(command, env=env)
    if code:
        sys.stderr.write(
            f"dpsight: rank {env['RANK']} ended with {'exit code' if code > 0 else 'signal'} {abs(code)}\n"
        )
    return code if code >= 0 else 128 - code


def main() -> int:
    ranks, command = sys.argv[1].split(";"), sys.argv[2:]
    with ThreadPoolExecutor(min(len(ranks), len(os.sched_getaffinity(0)))) as pool:
        codes: list[int] = []  # as they end
        list(pool.map(lambda rank: codes.append(run(rank, command)), ranks))
        return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main())
