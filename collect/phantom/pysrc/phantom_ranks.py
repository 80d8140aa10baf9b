"""One rank of a world whose other ranks do not run: the peers are copies of this one.

NCCL's part of that is in csrc/nccl.c. What else would wait for a peer is replaced here: the store that the ranks meet
at answers for them, gloo's process group is torch's own fake one, and collectives that carry Python objects give and
take this rank's. What a peer alone knows stays unknown: an object that another rank broadcasts is what this rank had
there.

Where all ranks run, as under torchrun, they meet as they would; gloo carries what NCCL would not.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import os
import pickle
import sys
import traceback
import warnings
from typing import Any

ANSWER = b"\x07" * 128
"""What an absent key reads: NCCL's identifier of a communicator, which csrc/nccl.c does not look at, has this size."""

QUIET = {
    # Their threads would ask the store, every few seconds, whether a peer has failed.
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_PROPAGATE_ERROR": "0",
}


def _make_store(dist: Any) -> type:
    class Store(dist.Store):  # type: ignore[misc]
        """A store where every peer has been, and nobody has to be waited for."""

        _values: dict[str, bytes] = {}  # of all: clients of one server see the same
        _kept: list[Any] = []  # torch's C++ keeps no reference to the Python object

        def __init__(self, *_args: Any, **_kwargs: Any) -> None:
            super().__init__()
            self._kept.append(self)

        def set(self, key: str, value: Any) -> None:
            self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

        def get(self, key: str) -> bytes:
            return self._values.setdefault(key, ANSWER)

        def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
            expected = expected.encode() if isinstance(expected, str) else bytes(expected)
            if self._values.get(key, b"") == expected:
                self.set(key, desired)
            return self._values.get(key, expected)

        def add(self, key: str, value: int) -> int:
            # The peers add as much: whoever counts them finds all of them.
            before = int(self._values.get(key, b"0"))
            after = before + value * int(os.environ["WORLD_SIZE"])
            self._values[key] = str(after).encode()
            return after

        def append(self, key: str, value: Any) -> None:
            self.set(key, self._values.get(key, b"") + (value.encode() if isinstance(value, str) else bytes(value)))

        def check(self, keys: list[str]) -> bool:
            return all(key in self._values for key in keys)

        def delete_key(self, key: str) -> bool:
            return self._values.pop(key, None) is not None

        def num_keys(self) -> int:
            return len(self._values)

        def multi_get(self, keys: list[str]) -> list[bytes]:
            return [self.get(key) for key in keys]

        def multi_set(self, keys: list[str], values: list[Any]) -> None:
            for key, value in zip(keys, values, strict=True):
                self.set(key, value)

        def has_extended_api(self) -> bool:
            return True

        def wait(self, *_args: Any) -> None:
            return None

        def set_timeout(self, _timeout: Any) -> None:
            return None

        def clone(self) -> Any:
            return self

    return Store


def _make_gloo(torch: Any, c10d: Any, fake: Any) -> type:
    kernels: list[Any] = []

    class Kind(type):
        def __call__(cls, _store: Any, rank: int, size: int, *_args: Any, **_kwargs: Any) -> Any:
            if not kernels:
                kernels.append(_answer_futures(torch, fake))
            return fake._create_internal(rank, size, fake.Options())

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, fake)

    class ProcessGroupGloo(metaclass=Kind):
        _Options = getattr(c10d.ProcessGroupGloo, "_Options", None)
        Options = getattr(c10d.ProcessGroupGloo, "Options", None)

    # The fake group counts nothing, and says so by raising.
    fake._set_sequence_number_for_group = lambda _group: None
    fake._get_sequence_number_for_group = lambda _group: 0
    return ProcessGroupGloo


def _answer_futures(torch: Any, fake: Any) -> Any:
    """The fake group's futures hold nothing, and DDP takes its gradients from those of its sums."""
    library = torch.library.Library("c10d", "IMPL")

    def kernel_for(key: str) -> Any:
        kernel = torch.library.get_kernel("c10d::allreduce_", key)

        def allreduce(keyset: Any, tensors: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
            backend = torch.distributed.ProcessGroup.unbox(group)._get_backend(tensors[0].device)
            if not isinstance(backend, fake):
                return kernel.call_boxed(keyset, tensors, group, *args, **kwargs)
            if tensors[0].device.type == "cpu":
                _took_for_all(backend.size())
            future = torch.futures.Future()
            future.set_result(tensors)
            return tensors, torch._C._distributed_c10d._create_work_from_future(future).boxed()

        return allreduce

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about the override that was just allowed
        for key in ("CPU", "CUDA"):
            library.impl("allreduce_", kernel_for(key), key, with_keyset=True, allow_override=True)
    return library


def _make_logger(dist: Any) -> type:
    class Logger(dist.Logger):  # type: ignore[misc]
        """DDP's record of itself. It takes any group called gloo for gloo's own class, and reads past its end."""

        def set_construction_data_and_log(self, *_args: Any) -> None:
            return None

    return Logger


def _unpickling(error: BaseException) -> bool:
    """Whether an error comes of what the peers sent. A function of its own: the caller must not keep the error's
    frames, which hold tensors."""
    return any(frame.f_code.co_name == "_tensor_to_object" for frame, _ in traceback.walk_tb(error.__traceback__))


def _values() -> Any:
    """The other module's, which lists what is read; None where it is not installed."""
    return getattr(sys.modules.get("dpsight_plugin_phantom_values"), "_installed", None)


def _took_for_all(size: int) -> None:
    """The script is given this rank's value for another's, where the host alone is asked."""
    values = _values()
    if values and size > 1:
        values.took_for_all()


class Ranks:
    """The collectives that torch makes of others, or that its fake group leaves undone."""

    def __init__(self, dist: Any) -> None:
        self._dist = dist

    def _mine(self, group: Any, root: int | None, group_root: int | None) -> bool:
        """Whether this rank is the root of a collective."""
        if group_root is not None:
            return self._dist.get_rank(group) == group_root
        return self._dist.get_rank() == (root or 0)

    def broadcast_object_list(
        self, object_list: Any, src: Any = None, group: Any = None, device: Any = None, group_src: Any = None
    ) -> None:
        if not self._mine(group, src, group_src):
            _took_for_all(self._dist.get_world_size(group))

    def all_gathered(self, gather: Any) -> Any:
        """``all_gather_object``, whose bytes come back from the device in a torch where nothing follows them."""

        def gathered(object_list: Any, obj: Any, *args: Any, **kwargs: Any) -> None:
            values = _values()
            try:
                with values.unlisted() if values else contextlib.nullcontext():
                    gather(object_list, obj, *args, **kwargs)  # for what it allocates
            except (EOFError, RuntimeError, pickle.UnpicklingError) as error:
                # What goes wrong before, be it the script's own or a device that is full, does so without peers too.
                if not _unpickling(error):
                    raise
            _took_for_all(len(object_list))
            for i in range(len(object_list)):
                object_list[i] = copy.deepcopy(obj)

        return gathered

    def gather_object(
        self, obj: Any, object_gather_list: Any = None, dst: Any = None, group: Any = None, group_dst: Any = None
    ) -> None:
        if object_gather_list is not None and self._mine(group, dst, group_dst):
            _took_for_all(len(object_gather_list))
            for i in range(len(object_gather_list)):
                object_gather_list[i] = copy.deepcopy(obj)

    def scatter_object_list(
        self,
        scatter_object_output_list: Any,
        scatter_object_input_list: Any = None,
        src: Any = None,
        group: Any = None,
        group_src: Any = None,
    ) -> None:
        if scatter_object_input_list and self._mine(group, src, group_src):
            given = scatter_object_input_list[self._dist.get_rank(group)]
            scatter_object_output_list[0] = copy.deepcopy(given)

    def send_object_list(self, object_list: Any, *_args: Any, **_kwargs: Any) -> None:
        pickle.dumps(list(object_list))  # for what goes wrong there

    def recv_object_list(
        self,
        object_list: Any,
        src: Any = None,
        group: Any = None,
        device: Any = None,
        group_src: Any = None,
        **_kw: Any,
    ) -> int:
        """What the peer would send is not known: the list stays as it is."""
        _took_for_all(self._dist.get_world_size(group))
        return src if group_src is None else self._dist.get_global_rank(group or self._dist.group.WORLD, group_src)

    def split_group(
        self,
        parent_pg: Any = None,
        split_ranks: Any = None,
        timeout: Any = None,
        pg_options: Any = None,
        group_desc: Any = None,
        **_kwargs: Any,
    ) -> Any:
        """Groups of their own: who is in a split communicator is the peers' to say. Ranks are the world's."""
        mine = self._dist.GroupMember.NON_GROUP_MEMBER
        for ranks in split_ranks:
            group = self._dist.new_group(ranks, timeout=timeout, pg_options=pg_options, group_desc=group_desc)
            if self._dist.get_rank() in ranks:
                mine = group
        return mine

    def monitored_barrier(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def on_host(self, gather: Any, scatter: Any) -> tuple[Any, Any]:
        """``gather`` and ``scatter``, which the fake group leaves undone."""

        def gathered(tensor: Any, gather_list: Any = None, *args: Any, **kwargs: Any) -> Any:
            work = gather(tensor, gather_list, *args, **kwargs)
            if tensor.device.type == "cpu":
                _took_for_all(len(gather_list or ()))
                for to in gather_list or ():
                    to.copy_(tensor)
            return work

        def scattered(
            tensor: Any, scatter_list: Any = None, src: Any = None, group: Any = None, *args: Any, **kw: Any
        ) -> Any:
            work = scatter(tensor, scatter_list, src, group, *args, **kw)
            if tensor.device.type == "cpu" and scatter_list:
                tensor.copy_(scatter_list[self._dist.get_rank(group)])
            return work

        return gathered, scattered


def _carrier(dist: Any, c10d: Any, made: dict[str, tuple[int, Any]], group: Any) -> Any:
    """A gloo group of the same ranks, which really talk to each other; None where the group's own is as good."""
    group = dist.group.WORLD if group is None else group
    if group is None or c10d._rank_not_in_group(group) or dist.get_world_size(group) == 1:
        return None
    if c10d._get_object_coll_device(group) == "cpu":
        return None
    name = group.group_name
    number, carrier = made.get(name, (0, None))
    if carrier not in c10d._world.pg_map:  # none yet, or of a group that is gone and left its name to this one
        carrier = _new_carrier(dist, c10d, group, f"{name} objects {number}")
        made[name] = number + 1, carrier
    return carrier


def _new_carrier(dist: Any, c10d: Any, group: Any, name: str) -> Any:
    """torch's own names count the groups of a rank: those of ranks that are in others would wait for each other under
    different ones, and the script's next group too, once ranks have counted differently."""
    named, c10d._process_group_name = c10d._process_group_name, lambda *_args, **_kwargs: name
    try:
        return dist.new_group(dist.get_process_group_ranks(group), backend="gloo", use_local_synchronization=True)
    finally:
        c10d._process_group_name = named


class _Post:
    """What single ranks send each other, by the store that all of them met at. Over gloo the sender would wait for the
    receiver where over NCCL it does not."""

    PIECE = 4 << 20  # bytes; torch's store takes up to 8 MiB at once

    def __init__(self, dist: Any, c10d: Any) -> None:
        self._dist, self._c10d = dist, c10d
        self._counts: dict[str, int] = {}

    def _peer(self, group: Any, rank: int | None, group_rank: int | None) -> int | None:
        """The other one's rank in the group; None where torch's own function does, or says what is wrong."""
        if self._c10d._rank_not_in_group(group) or (rank is None) == (group_rank is None):
            return None
        peer = self._dist.get_group_rank(group, rank) if group_rank is None else group_rank
        return None if peer == self._dist.get_rank(group) else peer

    def _letter(self, group: Any, sender: int, receiver: int) -> str:
        pair = f"objects/{group.group_name}/{sender}/{receiver}"
        self._counts[pair] = self._counts.get(pair, 0) + 1
        return f"{pair}/{self._counts[pair]}"

    def carried(self, function: Any) -> Any:
        """``send_object_list`` or ``recv_object_list``."""
        signature, sends = inspect.signature(function), function.__name__ == "send_object_list"

        @functools.wraps(function)
        def carry(*args: Any, **kwargs: Any) -> Any:
            call = signature.bind(*args, **kwargs)
            given, end = call.arguments, "dst" if sends else "src"
            group = given.get("group") or self._dist.group.WORLD
            peer = self._peer(group, given.get(end), given.get(f"group_{end}"))
            if peer is None or not _by_device(self._c10d, given, group):
                return function(*call.args, **call.kwargs)
            mine, objects = self._dist.get_rank(group), given["object_list"]
            if sends:
                return self._send(self._letter(group, mine, peer), pickle.dumps(list(objects)))
            received = pickle.loads(self._receive(self._letter(group, peer, mine)))
            for i, (_, each) in enumerate(zip(objects, received, strict=True)):
                objects[i] = each
            return self._dist.get_global_rank(group, peer)

        return carry

    def _send(self, letter: str, text: bytes) -> None:
        store = self._c10d._get_default_store()
        pieces = range(0, len(text), self.PIECE)
        for i, at in enumerate(pieces):
            store.set(f"{letter}/{i}", text[at : at + self.PIECE])
        store.set(letter, str(len(pieces)))

    def _receive(self, letter: str) -> bytes:
        store = self._c10d._get_default_store()
        keys = [letter, *(f"{letter}/{i}" for i in range(int(store.get(letter))))]
        text = b"".join(store.get(key) for key in keys[1:])
        for key in keys:
            store.delete_key(key)
        return text


def _by_device(c10d: Any, given: dict[str, Any], group: Any) -> bool:
    """Whether objects would go over NCCL. In a group that has gloo too, they go by the host though the script names a
    device."""
    if c10d._get_object_coll_device(group) == "cpu":
        given.pop("device", None)
        return False
    return given.get("device") is None or "cpu" not in str(given["device"])


def _carry_objects(dist: Any, c10d: Any) -> None:
    """Has gloo carry the objects of ranks that all run: what NCCL would carry does not arrive."""
    made: dict[str, tuple[int, Any]] = {}  # by the name of the group: how many there were, and the last

    def carried(function: Any) -> Any:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def carry(*args: Any, **kwargs: Any) -> Any:
            call = signature.bind(*args, **kwargs)
            group = call.arguments.get("group")
            carrier = _carrier(dist, c10d, made, group)
            if carrier is None:
                return function(*args, **kwargs)
            if function.__name__ == "all_gather_object":
                _allocate(function, call.arguments["obj"], group)
            call.arguments["group"] = carrier
            call.arguments.pop("device", None)
            return function(*call.args, **call.kwargs)

        return carry

    for name in ("broadcast_object_list", "all_gather_object", "gather_object", "scatter_object_list"):
        replacement = carried(getattr(c10d, name))
        for module in (dist, c10d):
            setattr(module, name, replacement)
    post = _Post(dist, c10d)
    for name in ("send_object_list", "recv_object_list"):
        replacement = post.carried(getattr(c10d, name))
        for module in (dist, c10d):
            setattr(module, name, replacement)


def _allocate(gather: Any, obj: Any, group: Any) -> None:
    """``all_gather_object`` over NCCL, for what it allocates. Nobody sees what it gives, so its reads are none."""
    values, size = _values(), _size(group)
    with values.unlisted() if values else contextlib.nullcontext():
        try:
            gather([None] * size, obj, group)
        except (EOFError, RuntimeError, pickle.UnpicklingError) as error:
            if not _unpickling(error):
                raise


def _size(group: Any) -> int:
    import torch.distributed as dist

    return int(dist.get_world_size(group))


def _joined(function: Any) -> Any:
    """Leaves word that this rank has joined a process group."""

    def helper(*args: Any, **kwargs: Any) -> Any:
        folder = os.environ.get("PHANTOM_JOINED")
        if folder:
            with open(os.path.join(folder, os.environ["RANK"]), "w"):
                pass
        return function(*args, **kwargs)

    return helper


def _no_source(*_args: Any, **_kwargs: Any) -> None:
    """The communicator that a new group would be split off from. How many ranks get a part of it is the peers' to agree
    upon; without one, each group makes its own, of as many as it has."""


def install(torch: Any) -> None:
    """Puts the peers' stand-ins in place. Does nothing in a torch without ``torch.distributed``."""
    import torch.distributed as dist

    if not dist.is_available():
        return
    from torch._C._distributed_c10d import FakeProcessGroup
    from torch.distributed import distributed_c10d as c10d

    if "PHANTOM_JOINED" not in os.environ:  # torchrun's ranks, or the script's own
        _carry_objects(dist, c10d)
        if hasattr(c10d, "_get_split_source"):
            c10d._get_split_source = _no_source
        return
    # torch.distributed.rendezvous is a function of that module.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    store = _make_store(dist)
    ranks = Ranks(dist)
    gather, scatter = ranks.on_host(c10d.gather, c10d.scatter)
    replaced: dict[str, Any] = {
        "Logger": _make_logger(dist),
        "TCPStore": store,
        "FileStore": store,
        "all_gather_object": ranks.all_gathered(c10d.all_gather_object),
        "gather": gather,
        "scatter": scatter,
        "_new_process_group_helper": _joined(c10d._new_process_group_helper),
        "_get_split_source": _no_source,
    }
    if hasattr(c10d, "ProcessGroupGloo"):
        replaced["ProcessGroupGloo"] = _make_gloo(torch, c10d, FakeProcessGroup)
    for name in (
        "broadcast_object_list",
        "gather_object",
        "scatter_object_list",
        "send_object_list",
        "recv_object_list",
        "split_group",
        "monitored_barrier",
    ):
        replaced[name] = getattr(ranks, name)
    mesh = importlib.import_module("torch.distributed.device_mesh")
    for module in (dist, c10d, rendezvous, mesh):
        for name, value in replaced.items():
            if hasattr(module, name):
                setattr(module, name, value)
