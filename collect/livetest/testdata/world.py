"""A rank of a distributed script: world.py ddp|gloo|fsdp|mesh|private|ghost|fgc|objects|sized|errors|none|same."""

import os
import pickle
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

HIDDEN = 512


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(64, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, 4 * HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(4 * HIDDEN, 7),
    )


def train(net, optimizer, steps=4, criterion=cross_entropy):
    for _ in range(steps):
        optimizer.zero_grad()
        criterion(net(torch.randn(32, 64).cuda()), torch.randint(0, 7, (32,)).cuda()).backward()
        optimizer.step()


class Unsendable:
    def __reduce__(self):
        raise EOFError("of its own")

    def __deepcopy__(self, _memo):
        return self


def raises(kind, given, size):
    try:
        dist.all_gather_object([None] * size, given)
    except kind:
        return True
    return False


def errors(size):
    """Checks that errors that need no other rank are raised."""
    torch.cuda.set_per_process_memory_fraction(1e-3)
    assert raises(torch.OutOfMemoryError, bytes(192 << 20), size)
    assert raises(EOFError, Unsendable(), size)


def objects(rank, size):
    """Calls everything by which ranks exchange objects. No call may wait for ever."""
    played = "PHANTOM_JOINED" in os.environ  # false under torchrun
    all_ranks = [rank] * size if played else list(range(size))
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    assert gathered == [{"rank": r} for r in all_ranks], gathered
    told = [{"seed": 7}] if rank == 0 else [None]
    dist.broadcast_object_list(told, src=0)
    assert told == [{"seed": 7}] or (rank and all_ranks[0] == rank)
    at_root = [None] * size if rank == 0 else None
    dist.gather_object(rank, at_root, dst=0)
    assert at_root is None or at_root == all_ranks
    mine = [None]
    dist.scatter_object_list(mine, list(range(size)) if rank == 0 else None, src=0)
    if size > 1:
        # All ranks send first, which does not wait over NCCL. The letter is larger than torch's store takes at once.
        before, behind = (rank - 1) % size, (rank + 1) % size
        letter = [None, b""]
        dist.send_object_list([{"from": rank}, bytes(9 << 20)], dst=behind)
        assert dist.recv_object_list(letter, src=before) == before
        assert letter == ([None, b""] if played else [{"from": before}, bytes(9 << 20)])
    dist.barrier()
    half = dist.new_group(list(range(size // 2 or 1)))
    host = dist.new_group(backend="gloo")
    dist.monitored_barrier(host)
    flag = torch.tensor([rank])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=host)
    dist.broadcast(flag, 0, group=host)
    everyone = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(everyone, torch.tensor([rank]), group=host)
    assert [int(t) for t in everyone] == all_ranks
    dist.gather(torch.tensor([rank]), everyone if rank == 0 else None, 0, group=host)
    dist.scatter(torch.zeros(1, dtype=torch.int64), everyone if rank == 0 else None, 0, group=host)
    if half is not dist.GroupMember.NON_GROUP_MEMBER:
        parts = [torch.empty(4, device="cuda") for _ in range(dist.get_world_size(half))]
        dist.all_gather(parts, torch.ones(4, device="cuda"), group=half)
        among = [None] * dist.get_world_size(half)
        dist.all_gather_object(among, rank, group=half)
    everyone = dist.new_group(list(range(size)))
    dist.all_gather_object(gathered, rank, group=everyone)  # some ranks are not in half, so they have a group less
    alone, sent = dist.new_group([rank], use_local_synchronization=True), [None]
    dist.gather_object(bytes(1 << 20), sent, dst=rank, group=alone)
    assert sent == [bytes(1 << 20)]
    if rank:  # a receiver's object need not be picklable
        dist.broadcast_object_list([threading.Lock()], src=0)
    else:
        dist.broadcast_object_list([{"seed": 8}], src=0)
    assert gathered == all_ranks, gathered
    store = dist.distributed_c10d._get_default_store()
    store.set(f"ready/{rank}", "1")
    store.wait([f"ready/{r}" for r in range(size)])
    assert 1 <= store.add("count", 1) <= size


def sized(rank, size):
    """Checks the device memory that sending objects takes: tensors of torch's functions, and NCCL's flat copy."""
    played, large, mine = "PHANTOM_JOINED" in os.environ, bytes(8 << 20), [None]
    one, all_of = len(pickle.dumps(large)), len(pickle.dumps(large)) * size
    dist.all_gather_object([None] * size, 0)  # a group's first call makes its communicator
    flat = not hasattr(dist, "all_gather_single")  # otherwise NCCL makes a flat copy
    every = one + all_of * (2 if flat else 1)
    cases = {
        "all_gather": (lambda: dist.all_gather_object([None] * size, large), every),
        "gather": (
            lambda: dist.gather_object(large, [None] * size if rank == 0 else None),
            one + (all_of if rank == 0 else 0),
        ),
        "broadcast": (lambda: dist.broadcast_object_list([large]), one),
        "scatter": (
            lambda: dist.scatter_object_list(mine, [large] * size if rank == 0 else None),
            (all_of if rank == 0 else 0) + (one if rank == 0 or not played else 0),
        ),
        "letters": (
            lambda: (
                dist.send_object_list([large], 1 - rank)
                if rank == 0
                else dist.recv_object_list([large if played else None], 0)
            ),
            one,
        ),
    }
    if not played:  # real ranks agree on the largest object's size
        cases["unequal"] = (lambda: dist.all_gather_object([None] * size, large if rank else 0), every)
        cases["told"] = (lambda: dist.broadcast_object_list([None if rank else large]), one)
    for name, (function, wanted) in cases.items():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        function()
        took = torch.cuda.max_memory_allocated() - before
        assert wanted <= took <= wanted + (64 << 10), f"{name} of rank {rank}: {took} bytes, not {wanted}"
    assert mine[0] == large or (played and rank)


def main():
    kind = sys.argv[1]
    if kind == "same":
        dist.init_process_group("gloo")
        held = torch.zeros(64 << 20, dtype=torch.uint8, device="cuda:0")
        dist.barrier()
        print("held", held.numel())
        dist.barrier()
        return
    if kind == "none":
        net = model().cuda()
        train(net, torch.optim.AdamW(net.parameters()))
        return
    rank, size, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    dist.init_process_group(
        {"gloo": "gloo", "mesh": None}.get(kind, "nccl"), device_id=device if kind == "fsdp" else None
    )
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    net = model().cuda()
    if kind in ("ddp", "gloo", "objects"):
        # A thread of gloo frees the first broadcast's buffer before or after DDP makes its buckets, by chance. So a
        # block might be reused or not.
        net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[local], init_sync=kind != "gloo")
    elif kind == "fsdp":
        from torch.distributed.fsdp import fully_shard

        for layer in net:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        fully_shard(net)
    elif kind == "mesh":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cuda", (max(1, size // 2), min(2, size)), mesh_dim_names=("outer", "inner"))
        fully_shard(net, mesh=mesh)
    optimizer, criterion = torch.optim.AdamW(net.parameters()), cross_entropy
    if kind in ("private", "ghost", "fgc"):
        from opacus import PrivacyEngine
        from opacus.distributed import DifferentiallyPrivateDistributedDataParallel

        data = torch.utils.data.TensorDataset(torch.randn(128, 64), torch.randint(0, 7, (128,)))
        two_pass = {} if kind == "private" else {"grad_sample_mode": "ghost", "criterion": torch.nn.CrossEntropyLoss()}
        net, optimizer, *found = PrivacyEngine().make_private(
            module=DifferentiallyPrivateDistributedDataParallel(net),
            optimizer=optimizer,
            data_loader=torch.utils.data.DataLoader(data, batch_size=32),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=False,
            **two_pass,
        )
        if two_pass:
            criterion = found[0]
            net.use_ghost_clipping = kind == "ghost"  # if false, the same hooks do fast gradient clipping
    if kind == "objects":
        objects(rank, size)
    if kind == "sized":
        sized(rank, size)
    if kind == "errors":
        errors(size)
    train(net, optimizer, 1, criterion)
    # DDP makes new buckets in the second forward. If NCCL's watchdog, which runs ten times a second, still held the
    # first buckets then, the peak would have one bucket more, by chance.
    time.sleep(1)
    train(net, optimizer, 3, criterion)
    dist.destroy_process_group()
    if kind == "objects":  # a second process group, whose groups get the same names
        dist.init_process_group("nccl")
        gathered = [None] * size
        dist.all_gather_object(gathered, rank)
        dist.all_gather_object(gathered, rank, group=dist.new_group(list(range(size))))  # this group gets half's name
        alone = dist.new_group([rank], use_local_synchronization=True)
        if rank == 0:
            dist.all_gather_object([None], rank, group=alone)
        # torch names this group by how many groups a rank has.
        dist.all_gather_object(gathered, rank, group=dist.new_group(list(range(size)), use_local_synchronization=True))
        assert gathered == ([rank] * size if "PHANTOM_JOINED" in os.environ else list(range(size))), gathered
        dist.destroy_process_group()


main()
