"""Launches kernels of torch, of its libraries, of an extension and of Triton."""

import ctypes
import json
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)
x = torch.randn(64, 64, device="cuda", requires_grad=True)
(torch.nn.functional.dropout(x @ x).sort()[0].cumsum(0) * 2).sum().backward()
before = values.notes()
pointers = ctypes.c_void_p * 3


def launched(folder, function, name="some_extension.so"):
    """Launches a kernel with the first tensor, the middle of the second and a number. Returns which of four tensors
    stay known."""
    tensors = [torch.arange(8.0, device="cuda") for _ in range(3)] + [torch.arange(8).cuda()]
    values_of = [ctypes.c_void_p(tensors[0].data_ptr()), ctypes.c_void_p(tensors[1][3:].data_ptr()), ctypes.c_int(7)]
    run = getattr(ctypes.CDLL(f"{sys.argv[1]}/{folder}/{name}"), function)
    run(pointers(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values_of)))
    return [values.is_known(tensor) for tensor in tensors]


known = {
    "cudaLaunchKernel": launched(".", "run"),
    "cuLaunchKernel": launched("triton", "run_driver"),
    "cuLaunchKernelEx": launched("torchinductor_me", "run_driver_ex"),
    "packed": launched("torchinductor_me", "run_packed"),
}
# A library with a name like torch's own changes only what torch's dispatcher shows.
known["expected"] = launched("expected", "run_driver", "libtorch_some.so")
json.dump({"before": before, "after": values.notes(), "known": known}, sys.stdout)
