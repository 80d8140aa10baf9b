"""Changes tensors in ways that torch's dispatcher does not show. They must become unknown, and others stay known."""

import json
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)
known = values.is_known
mean, var, count = torch.zeros(4), torch.ones(4), torch.tensor([8.0])


def running(training, gather=False, cudnn=True):
    norm = torch.nn.BatchNorm2d(4).cuda().train(training)
    x = torch.rand(2, 4, 3, 3, device="cuda")
    with torch.backends.cudnn.flags(enabled=cudnn):
        if gather:
            args = x, mean.cuda()[None], var.cuda()[None], norm.running_mean, norm.running_var, 0.1, 1e-5
            torch.batch_norm_gather_stats_with_counts(*args, count.cuda())
        else:
            norm(x)
    return [known(norm.running_mean), known(norm.running_var)]


def update_stats():
    at, of = mean.cuda(), var.cuda()
    torch.batch_norm_update_stats(torch.rand(2, 4, 3, 3, device="cuda"), at, of, 0.1)
    return [known(at), known(of)]


@torch.library.custom_op("unseen::write", mutates_args=("x",), device_types="cuda")
def write(x: torch.Tensor) -> None:
    pass


def written(x):
    write(x)
    return known(x)


def bumped(x):
    before = known(x)
    torch.autograd.graph.increment_version(x)
    return [before, known(x)]


def in_place(x):
    x.data.mul_(2)
    return x


def in_list(x):
    torch._foreach_add_([x], 1.0)
    return x


def through_iterable(x):
    y = torch.zeros(4).cuda()
    torch.autograd.graph.increment_version(item for item in (x, y))
    return [known(x), known(y)]


makers = {
    "from the host": lambda: torch.zeros(4).cuda(),
    "by a factory": lambda: torch.zeros(4, device="cuda"),
    "by a range": lambda: torch.arange(4.0, device="cuda"),
    "in place": lambda: torch.zeros(4, device="cuda").add_(1),
    "in place, as data": lambda: in_place(torch.zeros(4, device="cuda")),
    "into another": lambda: torch.add(torch.ones(4, device="cuda"), 1, out=torch.empty(4, device="cuda")),
    "in a list": lambda: in_list(torch.zeros(4, device="cuda")),
    "as a parameter": lambda: torch.nn.Parameter(torch.ones(4).cuda()),
}
json.dump(
    {
        "trained": {
            "cuDNN": running(True),
            "native": running(True, cudnn=False),
            "gathered": running(True, gather=True),
            "updated": update_stats(),
        },
        "evaluated": running(False) + running(False, cudnn=False),
        "bumped": {name: bumped(make()) for name, make in makers.items()},
        "custom_op": [written(make()) for make in makers.values()],
        "iterable": through_iterable(torch.zeros(4).cuda()),
        "reads": values.reads(),
    },
    sys.stdout,
)
