"""Reads values: those from the host are right, unknown ones read as zeros, and unknown counts get an answer."""

import json
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)
initialised = torch.cuda.is_initialized()
again = phantom_values.install(torch) is values

pairs = torch.tensor([[0, 3], [0, 3], [0, 5], [1, 3], [1, 1]])
rows, ids = pairs[:, :1].contiguous().cuda(), pairs[:, 1:].contiguous().cuda()
joined = torch.cat([rows, ids], dim=1)
unique, inverse = torch.unique(joined, dim=0, return_inverse=True)

# A block that held ids is freed and then used for the result of a kernel.
stale = torch.full((8,), 123456789).cuda()
del stale
computed = torch.randn(8, device="cuda").long()

changed = torch.arange(6).cuda()
changed.random_()
copied = torch.empty(3, dtype=torch.long, device="cuda")
copied.copy_(torch.tensor([4, 5, 6]))
copied_again = torch.empty_like(copied).copy_(copied)
copied_changed = torch.empty_like(copied).copy_(copied)
copied_changed.add_(torch.rand(3, device="cuda").long())
partly = torch.empty(4, dtype=torch.long, device="cuda")
partly[:2].copy_(torch.tensor([1, 2]))
unknown = torch.rand(40, device="cuda").long()
with torch.inference_mode():
    in_inference = torch.arange(3).cuda().tolist()
large = torch.full((1 << 20,), 7.0).cuda()
ids = torch.arange(600_000).remainder(1000).cuda().view(8, -1)
table = torch.nn.Embedding(2000, 2, sparse=True).cuda()
table(ids[3]).sum().backward()
json.dump(
    {
        "initialised_by_install": initialised,
        "again": again,
        "from_host": torch.tensor([7, 8]).cuda().tolist(),
        "inference": in_inference,
        "from_host_float": torch.tensor(1.5).cuda().item(),
        "unique_pairs": list(unique.shape),
        "inverse": list(inverse.shape),
        "nonzero": (torch.arange(100).cuda() > 90).nonzero().shape[0],
        "masked": torch.arange(100).cuda()[torch.arange(100).cuda() < 10].shape[0],
        "repeats": torch.repeat_interleave(torch.tensor([1, 2, 3]).cuda()).shape[0],
        "coalesced": table.weight.grad.coalesce()._nnz(),
        "stale": computed[0].item(),
        "stale_list": computed.tolist(),
        "sum": (torch.randn(1000, device="cuda").sum()).item(),
        "large": float(large.cpu().abs().sum()),
        "changed_known": values.is_known(changed),
        "copied": [copied.tolist(), copied_again.tolist()],
        "copied_changed_known": [values.is_known(copied_changed), values.is_known(partly)],
        "bound": torch.unique(unknown).shape[0],
        "guesses": values.guesses(),
        "reads": sum(values.reads().values()),
        "notes": any("copy limit" in note for note in values.notes()),
        "reads_here": all(site.startswith(__file__) for site in values.reads()),
    },
    sys.stdout,
)
