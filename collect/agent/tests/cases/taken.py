"""What a script has taken of the device when it ends: to be the same with the agent and without it."""

import ctypes
import json

import torch


def taken() -> None:
    """Prints the allocator's own counters, what is free on the device, and how many streams were ever made: the phantom
    GPU gives a stream its number as its handle. Whatever the agent took of the device, be it past torch, would show."""
    torch.cuda.synchronize()
    stats = {k: v for k, v in torch.cuda.memory_stats().items() if isinstance(v, int)}
    stream = ctypes.c_void_p()
    assert ctypes.CDLL(None).cudaStreamCreate(ctypes.byref(stream)) == 0
    print("taken", json.dumps({**stats, "free": torch.cuda.mem_get_info(), "streams": stream.value}))
