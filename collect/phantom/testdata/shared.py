"""Starts processes on shared devices. Prints the free memory that each sees, and whether its request succeeded."""

import json
import os
import subprocess
import sys

CHILD = """
import resource, sys, torch
got = 1
try:
    x = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    got = 0
most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, most[1]))  # as where a script has too many files open
free = torch.cuda.mem_get_info()[0]
resource.setrlimit(resource.RLIMIT_NOFILE, most)
print(free, got, flush=True)
sys.stdin.read()
"""


def start(mib, page=0):
    env = {**os.environ, "PHANTOM_SHARED_PAGE": str(page)}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(mib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    )
    return child, [int(word) for word in child.stdout.readline().split()]


first, alone = start(512)
second, beside = start(512)
other, elsewhere = start(512, page=1)
second.kill()  # its memory is free although the process was not reaped
os.waitid(os.P_PID, second.pid, os.WEXITED | os.WNOWAIT)
third, failed = start(1024)
third.kill()
first.kill()
os.waitid(os.P_PID, third.pid, os.WEXITED | os.WNOWAIT)
os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
last, after = start(1536)
json.dump({"alone": alone, "beside": beside, "elsewhere": elsewhere, "failed": failed, "after": after}, sys.stdout)
for child in (last, other):
    child.communicate()
