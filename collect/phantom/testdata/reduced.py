"""What a rank knows after a reduction, in a world of one and in one of two."""

import json
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)


def floats():
    return torch.arange(4.0, device="cuda")


def coalesced(x):
    with dist._coalescing_manager(device=torch.device("cuda")):
        dist.all_reduce(x)
        dist.all_reduce(torch.ones(2, device="cuda"))


def world(size):
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=size)
    cases = {
        "sum": (floats(), dist.all_reduce),
        "avg": (floats(), lambda x: dist.all_reduce(x, dist.ReduceOp.AVG)),
        "max": (floats(), lambda x: dist.all_reduce(x, dist.ReduceOp.MAX)),
        "min": (floats(), lambda x: dist.all_reduce(x, dist.ReduceOp.MIN)),
        "product": (floats(), lambda x: dist.all_reduce(x, dist.ReduceOp.PRODUCT)),
        "functional": (floats(), lambda x: functional.wait_tensor(functional.all_reduce(x, "sum", dist.group.WORLD))),
        "coalesced": (floats(), coalesced),
        "part": (floats(), lambda x: dist.all_reduce(x[2:])),
        "integers": (torch.arange(4).cuda(), lambda x: dist.all_reduce(x, async_op=True).wait()),
        "reduce": (floats(), lambda x: dist.reduce(x, 0)),
        "reduce max": (floats(), lambda x: dist.reduce(x, 0, dist.ReduceOp.MAX)),
        "unknown": (torch.rand(4, device="cuda"), dist.all_reduce),
    }
    results = {}
    for name, (x, reduce) in cases.items():
        result = reduce(x)
        x = result if isinstance(result, torch.Tensor) else x
        results[name] = x.tolist() if values.is_known(x) else "unknown"
    dist.destroy_process_group()
    return results


json.dump({"one": world(1), "two": world(2)}, sys.stdout)
