"""Prints CUDA's status codes in children that were forked before and after the parent used CUDA."""

import ctypes
import json
import os

import torch

runtime, driver = ctypes.CDLL(None), ctypes.CDLL("libcuda.so.1")
room = ctypes.create_string_buffer(4096)


def statuses(event):
    return {
        "cudaGetDeviceCount": runtime.cudaGetDeviceCount(room),
        "cudaGetDevice": runtime.cudaGetDevice(room),
        "cudaSetDevice": runtime.cudaSetDevice(0),
        "cudaEventQuery": runtime.cudaEventQuery(event),
        "cudaEventDestroy": runtime.cudaEventDestroy(event),
        "cudaEventCreate": runtime.cudaEventCreate(room),
        "cudaStreamCreate": runtime.cudaStreamCreate(room),
        "cudaMalloc": runtime.cudaMalloc(room, ctypes.c_size_t(512)),
        "cudaMemsetAsync": runtime.cudaMemsetAsync(room, 0, ctypes.c_size_t(1), None),
        "cudaFree": runtime.cudaFree(None),
        "cudaHostAlloc": runtime.cudaHostAlloc(room, ctypes.c_size_t(512), 0),
        "cudaDeviceSynchronize": runtime.cudaDeviceSynchronize(),
        "cuInit": driver.cuInit(0),
        "cuCtxGetCurrent": driver.cuCtxGetCurrent(room),
    }


def event():
    made = ctypes.c_void_p()
    assert runtime.cudaEventCreate(ctypes.byref(made)) == 0
    return made


def in_child(function):
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writes, json.dumps(function()).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as said:
        text = said.read()
    return json.loads(text) if os.waitpid(pid, 0)[1] == 0 else None


def uses():
    return torch.ones(3, device="cuda").add(1).numel()


found = {"before": in_child(uses), "before_calls": in_child(lambda: statuses(event()))}
first = event()
found["parent"] = uses()
found["after_calls"] = in_child(lambda: statuses(first))
found["grandchild_calls"] = in_child(lambda: in_child(lambda: statuses(first)))
print(json.dumps(found))
