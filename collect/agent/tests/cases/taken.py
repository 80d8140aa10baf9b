"""Prints what a script has used of the device at its end. The output must be the same with and without the agent."""

import ctypes
import json

import torch


def taken() -> None:
    """Prints the allocator's counters, the free memory, and the number of streams that were made, which the phantom
    GPU uses as a stream's handle. If the agent used the device at all, even not through torch, the output would
    differ."""
    torch.cuda.synchronize()
    stats = {k: v for k, v in torch.cuda.memory_stats().items() if isinstance(v, int)}
    stream = ctypes.c_void_p()
    assert ctypes.CDLL(None).cudaStreamCreate(ctypes.byref(stream)) == 0
    print("taken", json.dumps({**stats, "free": torch.cuda.mem_get_info(), "streams": stream.value}))
