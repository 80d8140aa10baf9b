"""Reads unknown values, each on a line with a comment that begins with "planted", and known values."""

import json
import os
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_init  # noqa: E402
import phantom_ranks  # noqa: E402
import phantom_values  # noqa: E402

values = phantom_values.install(torch)
phantom_init.install(torch)
os.environ["PHANTOM_JOINED"] = ""  # simulates a world whose other rank does not run
phantom_ranks.install(torch)
x, known = torch.rand(4, device="cuda"), torch.arange(4.0, device="cuda")


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return x[i]


def collate(items):
    return torch.tensor([item.item() for item in items])  # planted: collate


def hook(gradient):
    gradient.sum().item()  # planted: on autograd's thread


x[0].item()  # planted: item
bool(x.sum() > 0)  # planted: bool
float(x[1])  # planted: float
(x > 0).nonzero()  # planted: nonzero
x[x > 0]  # planted: boolean index
x.masked_select(x > 0)  # planted: masked_select
torch.where(x > 0)  # planted: where
x.unique()  # planted: unique
x.cpu()  # planted: cpu
x.to("cpu", non_blocking=True)  # planted: to, not blocking
x.cpu().numpy()  # planted: numpy
str(x)  # planted: printing
x.tolist()  # planted: tolist
torch.equal(x, known)  # planted: equal
try:
    torch.equal(known, known.cpu())
except RuntimeError:
    x[2].item()  # planted: after an operator that raised
torch.allclose(x, known)  # planted: allclose
torch.save(x, "/dev/null")  # planted: save
for element in x:
    element.item()  # planted: in a loop
torch.nn.Linear(4, 4, device="cuda").cpu()  # planted: a module's cpu
torch.nn.Linear(4, 4, device="cuda").to("cpu")  # planted: a module's to
{name: t.cpu() for name, t in torch.nn.Linear(4, 4, device="cuda").state_dict().items()}  # planted: state_dict
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begin.record()
end.record()
begin.elapsed_time(end_event=end)  # planted: elapsed_time
torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=2)
torch.distributed.all_gather_object([None] * 2, x.shape)  # planted: an object of the peers'
list(torch.utils.data.DataLoader(Items(), batch_size=2, collate_fn=collate))
w = torch.rand(4, device="cuda", requires_grad=True)
y = w * 2
y.register_hook(hook)
(y * x).sum().backward()
with torch.autograd.detect_anomaly(check_nan=True):
    loss = (w * 3).square().sum()
    loss.backward()  # asked: on autograd's thread, which has no line

(
    str(known),
    known.tolist(),
    known.cpu(),
    bool(known.sum() > 0),
    known[known > 1],
    known.unique(),
    torch.equal(known, known),
)
torch.empty(0, device="cuda").tolist()

with open(__file__) as file:
    planted = [n for n, line in enumerate(file, 1) if line.rpartition("#")[2].startswith(" planted")]
    file.seek(0)
    asked = next(n for n, line in enumerate(file, 1) if line.rpartition("#")[2].startswith(" asked"))
    file.seek(0)
    loop = next(n for n, line in enumerate(file, 1) if line.endswith("in a loop\n"))
reads = values.reads()
json.dump(
    {
        "planted": len(planted),
        # An object that another rank would send is listed under copied(), if torch reads nothing from the device for
        # it.
        "missing": [n for n in planted if f"{__file__}:{n}" not in reads | values.copied()],
        "false": [site for site in reads if site not in {f"{__file__}:{n}" for n in planted}],
        "item": reads[f"{__file__}:{planted[2]}"],
        "loop": [count for site, count in reads.items() if site.endswith(f":{loop}")],
        "guesses": values.guesses(),
        "asked": f"{__file__}:{asked}" in values.assumed() and "?" not in values.assumed(),
    },
    sys.stdout,
)
