"""Computes gradients of weights on several threads at once, each on its own device, and prints the workspaces'
peaks."""

import json
import sys
import threading

import torch

backward = torch.ops.aten.convolution_backward


def peaks(device: int, into: list[list[int]]) -> None:
    for batch in range(8, 40):
        x, weight, y = (
            torch.empty(shape, device=f"cuda:{device}")
            for shape in ((batch, 64, 16, 16), (32, 64, 3, 3), (batch, 32, 16, 16))
        )
        torch.cuda.reset_peak_memory_stats(device)
        backward(y, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])
        into[device].append(torch.cuda.max_memory_allocated(device))


taken: list[list[int]] = [[] for _ in range(torch.cuda.device_count())]
torch.empty(1, device="cuda")
threads = [threading.Thread(target=peaks, args=(device, taken)) for device in range(len(taken))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
alone: list[list[int]] = [[] for _ in taken]
peaks(0, alone)
json.dump({"together": taken, "alone": alone[0]}, sys.stdout)
