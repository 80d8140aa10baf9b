"""Makes as many allocator events as its argument says, without a module or a step. Prints the growth of the process's
host memory since the start, in MiB."""

import resource
import sys

import torch

torch.empty(1, device="cuda")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(int(sys.argv[1]) // 3):  # each makes three events: alloc, free_requested, free_completed
    torch.empty(1000, device="cuda")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
