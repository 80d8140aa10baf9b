"""Prints the workspaces of the convolutions in a file, which the first argument names."""

import json
import sys
from pathlib import Path

import torch

backward = torch.ops.aten.convolution_backward


def workspaces(case: dict) -> list[int]:
    dtype, stride, padding = getattr(torch, case["dtype"]), [case["stride"]] * 2, [case["padding"]] * 2
    torch.backends.cudnn.allow_tf32 = not case["no_tf32"]
    layout = torch.channels_last if case["channels_last"] else torch.contiguous_format

    def zeros(shape: list[int]) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="cuda", memory_format=layout)

    x, weight, y = (zeros(case[name]) for name in ("image", "weight", "output"))
    torch.cuda.memory._record_memory_history(stacks="python")
    if case["of"] == "output":
        result = torch.conv2d(x, weight, None, stride, padding)
    else:
        wanted = [case["of"] == "image", case["of"] == "weight", False]
        result = backward(y, x, weight, None, stride, padding, [1, 1], False, [0, 0], 1, wanted)[wanted.index(True)]
    sizes = [e["size"] for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] == "alloc"]
    torch.cuda.memory._record_memory_history(enabled=None)
    sizes.remove(result.nbytes)
    return sizes


taken = [workspaces(case) for case in json.loads(Path(sys.argv[1]).read_text())]
json.dump({"cudnn": torch.backends.cudnn.version(), "workspaces": taken}, sys.stdout)
