"""Prints the values that a rank knows after a collective, in worlds of one and of two ranks."""

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
    results, told = {}, {}
    for name, (x, reduce) in cases.items():
        result = reduce(x)
        x = result if isinstance(result, torch.Tensor) else x
        y = x.double() + 1  # a result computed from the collective's result
        before = sum(values.copied().values())
        results[name] = (y - 1).tolist() if values.is_known(y) else "unknown"
        told[name] = sum(values.copied().values()) - before
    same = torch.zeros(4, device="cuda")
    dist.broadcast(same, 1 % size)
    before = sum(values.copied().values())
    same.tolist()
    dist.broadcast(same.zero_(), 0)
    same.tolist()
    told["broadcast"] = sum(values.copied().values()) - before
    into, parts = torch.empty(4 * size, device="cuda"), [torch.empty(4, device="cuda") for _ in range(size)]
    dist.all_gather_into_tensor(into, floats())
    dist.all_gather(parts, floats())
    for name, gathered in (("gather", into), ("gather parts", parts[0])):
        before = sum(values.copied().values())
        gathered.tolist()
        told[name] = sum(values.copied().values()) - before
    # Autograd's thread reads the mask that another rank sent again in backward.
    chosen = torch.tensor([True, False, True, True], device="cuda")
    dist.broadcast(chosen, 1 % size)
    x = torch.rand(4, device="cuda", requires_grad=True)
    y = x[chosen]
    before = sum(values.copied().values())
    (y * torch.rand(3, device="cuda")).sum().backward()
    told["backward"] = sum(values.copied().values()) - before
    dist.destroy_process_group()
    return results, told


(one, copied_of_one), (two, copied_of_two) = world(1), world(2)
json.dump(
    {"one": one, "two": two, "none": copied_of_one, "copied": copied_of_two, "sites": values.copied()}, sys.stdout
)
