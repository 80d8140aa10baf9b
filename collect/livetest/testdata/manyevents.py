"""Allocates and frees so many times, without a module or a step. Says how much memory the process took for that, in
MiB, beyond what it took at the start."""

import resource
import sys

import torch

torch.empty(1, device="cuda")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(int(sys.argv[1]) // 3):  # an allocation, and a free that is asked for and done
    torch.empty(1000, device="cuda")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
