"""Runs operators on known tensors. Their results on the phantom GPU must equal those on the host."""

import json
import math
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)


def changed(arange, ones, **_):
    x = arange(4)
    x.add_(2).mul_(3)
    x[1] = 7
    x[2:].fill_(9)
    x.sub_(1).div_(2).clamp_(max=3.5)
    x.add_(x)  # both operands are the same tensor
    x[1:].mul_(x[:-1].clone())
    torch._foreach_add_([x, ones(2)], 1.0)
    return x


def beside_autograd(ones, **_):
    x = torch.nn.Parameter(ones(3))
    x.data.mul_(2)
    (x * x).sum().backward()
    return x, x.data, x.detach()[0], x.grad


def through_aliases(ones, **_):
    x = torch.nn.Parameter(ones(3))
    # Each alias has its own counter of changes, which may get the address of an earlier alias's counter.
    for _ in range(100):
        x.data.add_(1)
    return [x.data[i % 3].item() for i in range(100)], x


def in_inference(arange, **_):
    with torch.inference_mode():
        x = arange(3).add_(1)
        x[0] = 5
        return x


def scattered(tensor, zeros, **_):
    at, by = tensor([1, 1]), tensor([1.0, 2.0])
    return (
        zeros(2, 3).scatter_(1, tensor([[0], [2]]), 1.0),
        zeros(4).index_put_((at,), by, accumulate=True),
        zeros(4).index_add_(0, at, by),
        torch.nn.functional.one_hot(tensor([0, 2, 1])),
        tensor([0, 1, 1, 4]).bincount(),
    )


special = [1.0, math.nan, math.inf, -math.inf]
cases = {
    "factories": lambda arange, full, on, **_: (
        arange(5),
        full((3,), 2.5),
        torch.linspace(0, 1, 5, **on),
        torch.eye(2, **on),
    ),
    "filled": lambda on, **_: (torch.empty(3, **on).fill_(4), torch.empty(3, **on).zero_()),
    "changed": changed,
    "comparisons": lambda arange, tensor, **_: (arange(5) > 2, arange(5).eq(tensor([0, 1, 9, 3, 9])), arange(5) <= 1.5),
    "logical": lambda arange, **_: torch.logical_and(arange(4) > 1, ~(arange(4) > 2)),
    "joined": lambda ones, zeros, **_: (torch.cat([ones(2), zeros(1)]), torch.stack([ones(2), zeros(2)])),
    "reshaped": lambda arange, **_: (arange(5).quantile(0.5), arange(6).add_(1).unsqueeze_(0).t_().squeeze_()),
    "views": lambda arange, **_: arange(6).view(2, 3).t()[1],
    "reductions": lambda arange, **_: [
        getattr(arange(5), f)() for f in ("sum", "max", "min", "argmax", "mean", "any", "all", "norm", "median")
    ],
    "dimensions": lambda tensor, **_: (*tensor([[1.0, 5.0], [7.0, 2.0]]).max(1), tensor([[1.0, 5.0]]).cumsum(1)),
    "where": lambda arange, tensor, **_: (
        torch.where(arange(4) > 1, tensor(1.0), tensor(0.0)),
        arange(4).masked_fill(arange(4) > 2, -1),
    ),
    "finite": lambda tensor, **_: (
        tensor(special).isnan(),
        tensor(special).isfinite(),
        tensor(special).isinf(),
        tensor(special).nan_to_num(),
    ),
    "triangles": lambda ones, **_: (torch.triu(ones(3, 3), 1), torch.tril(ones(3, 3)).bool()),
    "scattered": scattered,
    "nonzero": lambda arange, **_: (
        (arange(10) > 6).nonzero(),
        arange(10)[arange(10) % 3 == 0],
        arange(10).masked_select(arange(10) > 6),
    ),
    "unique": lambda tensor, **_: (
        *tensor([3.5, 1, 3.5, 2]).unique(return_inverse=True, return_counts=True),
        *tensor([[3, 1], [3, 1], [0, 2]]).unique(dim=0, return_inverse=True, return_counts=True),
        *tensor([3, 3, 1, 1, 3]).unique_consecutive(return_counts=True),
    ),
    "repeats": lambda arange, tensor, **_: (
        arange(3).repeat_interleave(tensor([1, 0, 2])),
        arange(3).repeat_interleave(2),
        arange(3).repeat(2),
    ),
    "membership": lambda tensor, **_: (
        torch.isin(tensor([0, 1, 4]), tensor([1])),
        torch.searchsorted(tensor([1, 3, 5]), tensor([2, 6])),
    ),
    "equal": lambda arange, ones, **_: (
        torch.equal(arange(3), arange(3)),
        torch.equal(arange(3), ones(3)),
        torch.allclose(ones(3), ones(3)),
    ),
    "sorted": lambda tensor, **_: (
        *tensor([3, 1, 2]).sort(),
        *tensor([3.0, 1, 2]).topk(2),
        tensor([[3.0, 1]]).gather(1, tensor([[1, 0]])),
    ),
    "network": lambda ones, zeros, tensor, **_: (
        torch.nn.functional.linear(ones(1, 2), ones(2, 2), ones(2)).softmax(1),
        torch.nn.functional.cross_entropy(zeros(2, 4), tensor([0, 1])),
        torch.nn.functional.embedding(tensor([1]), ones(2, 2)),
    ),
    "lists": lambda ones, zeros, **_: torch._foreach_add([zeros(2), ones(1)], 1.0),
    "out": lambda ones, on, **_: torch.add(ones(2), 1, out=torch.empty(2, **on)),
    "types": lambda arange, ones, **_: (arange(3).to(torch.bfloat16).float(), (ones(2) * 1j).conj().imag),
    "beside autograd": beside_autograd,
    "through aliases": through_aliases,
    "inference": in_inference,
    # Larger than tensors that the phantom GPU copies by itself.
    "long": lambda on, **_: (torch.arange(100_000, **on), torch.arange(100_000, **on).sum()),
}


def run(device):
    on = {"device": device}
    make = {
        "on": on,
        "arange": lambda *a: torch.arange(*a, dtype=torch.float32, **on),
        "ones": lambda *a: torch.ones(*a, **on),
        "zeros": lambda *a: torch.zeros(*a, **on),
        "full": lambda *a: torch.full(*a, **on),
        "tensor": lambda a: torch.tensor(a, **on),
    }

    def plain(value):
        if isinstance(value, torch.Tensor):
            return [list(value.shape), value.tolist()]
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    return {name: repr(plain(case(**make))) for name, case in cases.items()}


host, device = run("cpu"), run("cuda")
randoms = [torch.rand(4, device="cuda"), torch.empty(4, device="cuda"), torch.zeros(4, device="cuda").bernoulli_()]
generator = torch.get_rng_state()
torch.nn.functional.dropout(torch.ones(4, device="cuda"))
json.dump(
    {
        "cases": len(cases),
        "different": {name: [host[name][:200], device[name][:200]] for name in cases if host[name] != device[name]},
        "reads": values.reads(),
        "guesses": values.guesses(),
        "assumptions": values.assumptions(),
        "notes": values.notes(),
        "randoms_known": [values.is_known(t) for t in randoms],
        "generator_used": not torch.equal(generator, torch.get_rng_state()),
    },
    sys.stdout,
)
