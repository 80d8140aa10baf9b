"""Runs a command once for each of several ranks: phantom_launch.py NAME=VALUE,…;NAME=VALUE,… COMMAND…

The ranks do not communicate, so they need not run at the same time: at most as many run at once as there are
processors. Each rank writes to the launcher's output. The launcher exits with the code of the rank that failed first,
whose exception the collector reports.
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
        codes: list[int] = []  # exit codes, in the order in which ranks end
        list(pool.map(lambda rank: codes.append(run(rank, command)), ranks))
        return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main())
