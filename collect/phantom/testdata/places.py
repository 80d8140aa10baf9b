"""Requests segments, and prints their places on each device, in MiB from the first segment.

A number in the list is a request in MiB; "map N" maps N MiB of host memory; "unmap" unmaps the oldest of these;
"copy" copies to the last segment; any other word launches a kernel of that name.
"""

import ctypes
import json
import mmap
import sys

library = ctypes.CDLL(None)
kernels: dict[str, ctypes.Array[ctypes.c_char]] = {}


def offsets(device: int, wants: list[object]) -> list[int]:
    library.cudaSetDevice(device)
    places: list[int] = []
    mapped: list[mmap.mmap] = []
    for want in wants:
        if isinstance(want, str) and want.startswith("map "):
            mapped.append(mmap.mmap(-1, (int(want[4:]) << 20) + 4096))  # one page more, as malloc needs for itself
            continue
        if want == "unmap":
            mapped.pop(0).close()
            continue
        if want == "copy":
            library.cudaMemcpy(ctypes.c_void_p(places[-1]), ctypes.create_string_buffer(8), ctypes.c_size_t(8), 1)
            continue
        if isinstance(want, str):
            if want not in kernels:
                kernels[want] = ctypes.create_string_buffer(want.encode())
                library.__cudaRegisterFunction(None, kernels[want], None, kernels[want])
            library.cudaLaunchKernel(kernels[want])
            continue
        address = ctypes.c_void_p()
        if library.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(want << 20)):
            raise MemoryError(f"{want} MiB")
        places.append(address.value or 0)
    return [(place - places[0]) >> 20 for place in places]


json.dump([offsets(device, wants) for device, wants in enumerate(json.loads(sys.argv[1]))], sys.stdout)
