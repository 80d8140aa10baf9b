"""Lets one rank run as if in a world of several ranks: the other ranks do not run, and count as copies of this rank.

csrc/nccl.c makes NCCL wait for no other rank. phantom_ranks replaces all other code that would wait for another rank.
The store at which the ranks meet answers for the other ranks. gloo's process group is torch's own fake one. Collectives
of Python objects both send and receive this rank's objects. What only another rank knows stays unknown: if another rank
broadcasts an object, this rank gets its own.

If all ranks run, as under torchrun, they meet as usual, and gloo carries the objects that NCCL would carry.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import inspect
import os
import pickle
import sys
import warnings
from typing import Any

import phantom_torch

ANSWER = b"\x07" * 128
"""The value of a missing key: it has the size of NCCL's identifier of a communicator, whose content csrc/nccl.c
ignores."""

QUIET = {
    # QUIET's settings stop NCCL's monitor threads, which would ask the store every few seconds whether another rank has
    # failed.
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_PROPAGATE_ERROR": "0",
}


def _make_store(dist: Any) -> type:
    class Store(dist.Store):  # type: ignore[misc]
        """A store that every peer has already visited, so that no rank waits."""

        _values: dict[str, bytes] = {}  # shared by all stores, as clients of one server share their values
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
            # The other ranks add the same amount, so code that counts ranks finds all of them.
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


def _make_gloo(torch: Any, groups: phantom_torch.Groups) -> type:
    kernels: list[Any] = []
    fake = groups.fake()

    class Kind(type):
        def __call__(cls, _store: Any, rank: int, size: int, *_args: Any, **_kwargs: Any) -> Any:
            if not kernels:
                kernels.append(_answer_futures(torch, fake))
            return groups.make_fake(rank, size)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, fake)

    groups.count_fake()
    return Kind("ProcessGroupGloo", (), groups.gloo_options())


def _answer_futures(torch: Any, fake: Any) -> Any:
    """Gives the fake group's futures their results. DDP takes its gradients from the futures of its sums, and without
    this the futures are empty."""
    library = torch.library.Library("c10d", "IMPL")

    def kernel_for(key: str) -> Any:
        kernel = torch.library.get_kernel("c10d::allreduce_", key)

        def allreduce(keyset: Any, tensors: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
            backend = phantom_torch.backend_of(torch, group, tensors[0].device)
            if not isinstance(backend, fake):
                return kernel.call_boxed(keyset, tensors, group, *args, **kwargs)
            if tensors[0].device.type == "cpu":
                _took_for_all(backend.size())
            future = torch.futures.Future()
            future.set_result(tensors)
            return tensors, phantom_torch.work_of(torch, future)

        return allreduce

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about the allowed override
        for key in ("CPU", "CUDA"):
            library.impl("allreduce_", kernel_for(key), key, with_keyset=True, allow_override=True)
    return library


def _make_logger(dist: Any) -> type:
    class Logger(dist.Logger):  # type: ignore[misc]
        """DDP's logger. torch's own logger takes any group called gloo for gloo's own class, and so reads beyond the
        end of a fake group's object."""

        def set_construction_data_and_log(self, *_args: Any) -> None:
            return None

    return Logger


def _values() -> Any:
    """The module that lists the script's reads, or None if values are not followed."""
    module = sys.modules.get("phantom_values")
    return module.installed() if module is not None else None


def _took_for_all(size: int) -> None:
    """Notes that the script gets this rank's value for another rank's, in a collective on the host."""
    values = _values()
    if values and size > 1:
        values.took_for_all()


def _arrived(given: Any) -> Any:
    """An object as a collective returns it. To make it, its tensors are read without being listed as the script's
    reads."""
    values = _values()
    with values.unlisted() if values else contextlib.nullcontext():
        return pickle.loads(pickle.dumps(given))


def _pickled(there: Any) -> bytes:
    """Pickles the object that an arriving object replaces. The result is empty if that object cannot be pickled."""
    values = _values()
    with values.unlisted() if values else contextlib.nullcontext():
        try:
            return pickle.dumps(there)
        except (TypeError, AttributeError, pickle.PicklingError):
            return b""


class Ranks:
    """Replaces the collectives that torch builds from others, or that its fake group does not implement. Collectives of
    objects allocate on the device what torch's own collectives allocate if all ranks have the same objects as this
    rank."""

    OBJECTS = (
        "all_gather_object",
        "broadcast_object_list",
        "gather_object",
        "scatter_object_list",
        "send_object_list",
        "recv_object_list",
    )

    def __init__(self, dist: Any, c10d: Any) -> None:
        self._dist, self._groups = dist, phantom_torch.Groups(c10d)
        self._own = {name: getattr(c10d, name) for name in self.OBJECTS}

    def _allocate(self, name: str, letter: Any, *args: Any, **kwargs: Any) -> None:
        function = self._own[name]
        _allocate(self._groups, function, inspect.signature(function).bind(*args, **kwargs), letter)

    def _mine(self, group: Any, root: int | None, group_root: int | None) -> bool:
        """Whether this rank is the root of a collective."""
        if group_root is not None:
            return self._dist.get_rank(group) == group_root
        return self._dist.get_rank() == (root or 0)

    def all_gather_object(self, object_list: Any, obj: Any, group: Any = None, **kwargs: Any) -> None:
        self._allocate("all_gather_object", _Letter(), object_list, obj, group, **kwargs)
        if self._groups.lacks_this_rank(group):
            return
        _took_for_all(len(object_list))
        for i in range(len(object_list)):
            object_list[i] = _arrived(obj)

    def broadcast_object_list(
        self,
        object_list: Any,
        src: Any = None,
        group: Any = None,
        device: Any = None,
        group_src: Any = None,
        **kwargs: Any,
    ) -> None:
        if self._groups.lacks_this_rank(group):
            return
        kwargs = {**kwargs, "group": group, "device": device, "group_src": self._dist.get_rank(group)}
        mine = self._mine(group, src, group_src)
        given = object_list if mine else [each if _pickled(each) else None for each in object_list]
        self._allocate("broadcast_object_list", _Letter(), given, **kwargs)
        if not mine:
            _took_for_all(self._dist.get_world_size(group))

    def gather_object(
        self,
        obj: Any,
        object_gather_list: Any = None,
        dst: Any = None,
        group: Any = None,
        group_dst: Any = None,
        **kwargs: Any,
    ) -> None:
        self._allocate("gather_object", _Letter(), obj, object_gather_list, dst, group, group_dst, **kwargs)
        if object_gather_list is not None and self._mine(group, dst, group_dst):
            _took_for_all(len(object_gather_list))
            for i in range(len(object_gather_list)):
                object_gather_list[i] = _arrived(obj)

    def scatter_object_list(
        self,
        scatter_object_output_list: Any,
        scatter_object_input_list: Any = None,
        src: Any = None,
        group: Any = None,
        group_src: Any = None,
        **kwargs: Any,
    ) -> None:
        given = (scatter_object_output_list, scatter_object_input_list, src, group, group_src)
        self._allocate("scatter_object_list", _Letter(), *given, **kwargs)
        if self._groups.lacks_this_rank(group):
            return
        if scatter_object_input_list and self._mine(group, src, group_src):
            mine = scatter_object_input_list[self._dist.get_rank(group)]
            scatter_object_output_list[0] = _arrived(mine)
        else:
            _took_for_all(self._dist.get_world_size(group))

    def send_object_list(self, object_list: Any, *args: Any, **kwargs: Any) -> None:
        self._allocate("send_object_list", _Letter(), object_list, *args, **kwargs)

    def recv_object_list(
        self,
        object_list: Any,
        src: Any = None,
        group: Any = None,
        device: Any = None,
        group_src: Any = None,
        **kwargs: Any,
    ) -> int:
        """Returns without changing the list, since what the other rank would send is unknown."""
        letter = _Letter([len(_pickled(each) or pickle.dumps(None)) for each in object_list])
        self._allocate("recv_object_list", letter, object_list, src, group, device, group_src, **kwargs)
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
        """Makes separate groups, since only the other ranks know who is in a split communicator. `split_ranks` are
        numbers of ranks in the world."""
        mine = self._dist.GroupMember.NON_GROUP_MEMBER
        for ranks in split_ranks:
            group = self._dist.new_group(ranks, timeout=timeout, pg_options=pg_options, group_desc=group_desc)
            if self._dist.get_rank() in ranks:
                mine = group
        return mine

    def monitored_barrier(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def on_host(self, gather: Any, scatter: Any) -> tuple[Any, Any]:
        """``gather`` and ``scatter``, which the fake group does not implement."""

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


class _Carriers:
    """Gloo groups whose ranks really communicate. Each has the same ranks as one of the script's groups."""

    _MARK = " objects "  # every carrier's name has it, and no name that torch gives

    def __init__(self, dist: Any, c10d: Any) -> None:
        self._dist, self._groups = dist, phantom_torch.Groups(c10d)
        self._made: dict[str, tuple[int, Any]] = {}  # by the group's name: number of carriers made, and the last one
        self.world = 0  # successful calls of init_process_group, after each of which groups get the same names again
        self._groups.replace_namer(self._uncounted)
        for module in (dist, c10d):
            module.init_process_group = self._counted(c10d.init_process_group)

    def _counted(self, initialise: Any) -> Any:
        @functools.wraps(initialise)
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            done = initialise(*args, **kwargs)
            self.world += 1
            self._made.clear()
            return done

        return init_process_group

    def _uncounted(self, namer: Any) -> Any:
        """Names the script's groups as if carriers did not exist. torch numbers groups on each rank. If only some ranks
        had a carrier, the ranks would wait for one another under different names."""

        def name(*args: Any, **kwargs: Any) -> Any:
            names = self._groups.names()
            carriers = {group: name for group, name in names.items() if self._MARK in name}
            for group in carriers:
                del names[group]
            try:
                return namer(*args, **kwargs)
            finally:
                names.update(carriers)

        return name

    def of(self, group: Any) -> Any:
        """Returns the carrier of a group, or None if the group's own backend suffices."""
        group = self._dist.group.WORLD if group is None else group
        if group is None or self._groups.lacks_this_rank(group) or self._groups.moves_objects_by_host(group):
            return None
        name = group.group_name
        number, carrier = self._made.get(name, (0, None))
        if not self._groups.is_alive(carrier):  # no carrier, or an earlier group's with this name
            carrier = self._new(group, f"{name}{self._MARK}{self.world}.{number}")
            self._made[name] = number + 1, carrier
        return carrier

    def _new(self, group: Any, name: str) -> Any:
        dist = self._dist
        options: dict[str, Any] = {"backend": "gloo", "use_local_synchronization": True}
        if "sort_ranks" in inspect.signature(dist.new_group).parameters:
            options["sort_ranks"] = False  # keeps the order of ranks in the group
        with self._groups.named(name):
            return dist.new_group(dist.get_process_group_ranks(group), **options)

    def end(self) -> None:
        """Releases the carriers. If one of gloo's threads released a tensor after the interpreter has ended, that
        thread would block while it holds a lock for which the end of its group waits."""
        for _, carrier in self._made.values():
            if self._groups.is_alive(carrier):
                self._dist.destroy_process_group(carrier)
        self._made.clear()


class _Post:
    """Carries objects that one rank sends to another, through the store at which all ranks met. Over gloo the sender
    would wait for the receiver, while over NCCL it does not."""

    PIECE = 4 << 20  # bytes; torch's store takes up to 8 MiB at once

    def __init__(self, dist: Any, c10d: Any, carriers: _Carriers) -> None:
        self._dist, self._groups, self._carriers = dist, phantom_torch.Groups(c10d), carriers
        self._counts: dict[str, int] = {}

    def _peer(self, group: Any, rank: int | None, group_rank: int | None) -> int | None:
        """The rank of the other side in the group, or None if torch's own function handles the call or reports an
        error."""
        if self._groups.lacks_this_rank(group) or (rank is None) == (group_rank is None):
            return None
        peer = self._dist.get_group_rank(group, rank) if group_rank is None else group_rank
        return None if peer == self._dist.get_rank(group) else peer

    def _letter(self, group: Any, sender: int, receiver: int) -> str:
        pair = f"objects/{self._carriers.world}/{group.group_name}/{sender}/{receiver}"
        self._counts[pair] = self._counts.get(pair, 0) + 1
        return f"{pair}/{self._counts[pair]}"

    def carried(self, function: Any) -> Any:
        """Wraps ``send_object_list`` or ``recv_object_list``."""
        signature, sends = inspect.signature(function), function.__name__ == "send_object_list"

        @functools.wraps(function)
        def carry(*args: Any, **kwargs: Any) -> Any:
            call = signature.bind(*args, **kwargs)
            given, end = call.arguments, "dst" if sends else "src"
            group = given.get("group") or self._dist.group.WORLD
            peer = self._peer(group, given.get(end), given.get(f"group_{end}"))
            if peer is None or not _by_device(self._groups, given, group):
                return function(*call.args, **call.kwargs)
            mine, objects = self._dist.get_rank(group), given["object_list"]
            if sends:
                _allocate(self._groups, function, call, _Letter())
                return self._send(
                    self._letter(group, mine, peer), pickle.dumps([pickle.dumps(each) for each in objects])
                )
            received = pickle.loads(self._receive(self._letter(group, peer, mine)))
            _allocate(self._groups, function, call, _Letter([len(each) for each in received]))
            for i, (_, each) in enumerate(zip(objects, received, strict=True)):
                objects[i] = pickle.loads(each)
            return self._dist.get_global_rank(group, peer)

        return carry

    def _send(self, letter: str, text: bytes) -> None:
        store = self._groups.store()
        pieces = range(0, len(text), self.PIECE)
        for i, at in enumerate(pieces):
            store.set(f"{letter}/{i}", text[at : at + self.PIECE])
        store.set(letter, str(len(pieces)))

    def _receive(self, letter: str) -> bytes:
        store = self._groups.store()
        keys = [letter, *(f"{letter}/{i}" for i in range(int(store.get(letter))))]
        text = b"".join(store.get(key) for key in keys[1:])
        for key in keys:
            store.delete_key(key)
        return text


def _by_device(groups: phantom_torch.Groups, given: dict[str, Any], group: Any) -> bool:
    """Whether NCCL would carry a group's objects. If the group has gloo too, objects go through the host even if the
    script names a device."""
    if groups.moves_objects_by_host(group):
        given.pop("device", None)
        return False
    return given.get("device") is None or "cpu" not in str(given["device"])


def _carry_objects(dist: Any, c10d: Any) -> None:
    """Makes gloo carry objects if all ranks run, since data that NCCL would carry does not arrive on the phantom
    GPU."""
    carriers, groups = _Carriers(dist, c10d), phantom_torch.Groups(c10d)
    atexit.register(carriers.end)

    def carried(function: Any) -> Any:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def carry(*args: Any, **kwargs: Any) -> Any:
            call = signature.bind(*args, **kwargs)
            group = call.arguments.get("group")
            carrier = carriers.of(group)
            if carrier is None:
                if not groups.lacks_this_rank(group):
                    _by_device(groups, call.arguments, group)
                return function(*call.args, **call.kwargs)
            _allocate(groups, function, call, _Sizes(c10d, carrier))
            call.arguments["group"] = carrier
            call.arguments.pop("device", None)
            return function(*call.args, **call.kwargs)

        return carry

    for name in ("broadcast_object_list", "all_gather_object", "gather_object", "scatter_object_list"):
        replacement = carried(getattr(c10d, name))
        for module in (dist, c10d):
            setattr(module, name, replacement)
    post = _Post(dist, c10d, carriers)
    for name in ("send_object_list", "recv_object_list"):
        replacement = post.carried(getattr(c10d, name))
        for module in (dist, c10d):
            setattr(module, name, replacement)


class _Sizes:
    """The collectives by which torch's functions for objects exchange sizes and move bytes. On the device the
    collectives do their usual work. Sizes decide the next allocation, so gloo also carries sizes on the host, but not
    the bytes."""

    def __init__(self, c10d: Any, carrier: Any) -> None:
        self._c10d, self._carrier = c10d, carrier

    def broadcast(self, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        on_host = tensor.cpu() if _is_size(tensor) else None
        if on_host is not None:
            self._c10d.broadcast(on_host, group_src=kwargs["group_src"], group=self._carrier)
        done = self._c10d.broadcast(tensor, *args, **kwargs)
        if on_host is not None:
            tensor.copy_(on_host)
        return done

    def all_gather(self, tensors: list[Any], tensor: Any, *args: Any, **kwargs: Any) -> Any:
        on_host = [t.cpu() for t in tensors] if _is_size(tensor) else []
        if on_host:
            self._c10d.all_gather(on_host, tensor.cpu(), group=self._carrier)
        done = self._c10d.all_gather(tensors, tensor, *args, **kwargs)
        for to, size in zip(tensors, on_host, strict=False):
            to.copy_(size)
        return done

    def all_gather_single(self, to: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        """all_gather_into_tensor under its name in later versions of torch."""
        on_host = to.cpu() if _is_size(tensor) else None
        if on_host is not None:
            self._c10d.all_gather(list(on_host.split(1)), tensor.cpu(), group=self._carrier)
        done = self._c10d.all_gather_single(to, tensor, *args, **kwargs)
        if on_host is not None:
            to.copy_(on_host)
        return done


class _Letter:
    """The collectives for objects that one rank sends to another. No rank waits, and the receiver already knows the
    sizes."""

    def __init__(self, sizes: list[int] | None = None) -> None:
        self._sizes = sizes

    def send(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def recv(self, tensor: Any, *_args: Any, **_kwargs: Any) -> int:
        if _is_size(tensor) and self._sizes is not None:
            tensor.copy_(tensor.new_tensor(self._sizes, device="cpu"))
        return 0

    def batch_isend_irecv(self, operations: list[Any]) -> list[Any]:
        for operation in operations:
            self.recv(operation.tensor)
        return [self]

    def wait(self) -> None:
        return None


def _is_size(tensor: Any) -> bool:
    """Whether a tensor has the type that torch uses for sizes of objects. Pickled objects are bytes."""
    return str(tensor.dtype) == "torch.int64"


def _allocate(groups: phantom_torch.Groups, function: Any, call: inspect.BoundArguments, moves: Any) -> None:
    """Makes one of torch's functions for objects allocate what it would allocate over NCCL. The function's results are
    unused, so its reads are not listed."""
    values = _values()
    with values.unlisted() if values else contextlib.nullcontext():
        groups.repeat(function, call, moves)


def _joined(function: Any) -> Any:
    """Notes in a file that this rank has joined a process group."""

    def helper(*args: Any, **kwargs: Any) -> Any:
        folder = os.environ.get("PHANTOM_JOINED")
        if folder:
            with open(os.path.join(folder, os.environ["RANK"]), "w"):
                pass
        return function(*args, **kwargs)

    return helper


def _no_source(*_args: Any, **_kwargs: Any) -> None:
    """Returns no communicator from which torch could split a new group: all ranks would have to agree which ranks get a
    part. So each group makes a communicator of its own for its ranks."""


def install(torch: Any) -> None:
    """Installs the replacements for the other ranks. Does nothing in a torch without ``torch.distributed``."""
    import torch.distributed as dist

    if not dist.is_available():
        return
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    groups = phantom_torch.Groups(c10d)
    if "PHANTOM_JOINED" not in os.environ:  # torchrun or the script starts the ranks
        _carry_objects(dist, c10d)
        groups.replace(phantom_torch.SPLIT_SOURCE, _no_source)
        return
    # As an attribute of torch.distributed, `rendezvous` is a function of the module with this name.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    store = _make_store(dist)
    ranks = Ranks(dist, c10d)
    gather, scatter = ranks.on_host(c10d.gather, c10d.scatter)
    replaced: dict[str, Any] = {
        "Logger": _make_logger(dist),
        "TCPStore": store,
        "FileStore": store,
        "gather": gather,
        "scatter": scatter,
        phantom_torch.NEW_GROUP: _joined(groups.new_group()),
        phantom_torch.SPLIT_SOURCE: _no_source,
    }
    if hasattr(c10d, "ProcessGroupGloo"):
        replaced["ProcessGroupGloo"] = _make_gloo(torch, groups)
    for name in (*Ranks.OBJECTS, "split_group", "monitored_barrier"):
        replaced[name] = getattr(ranks, name)
    mesh = importlib.import_module("torch.distributed.device_mesh")
    for module in (dist, c10d, rendezvous, mesh):
        for name, value in replaced.items():
            if hasattr(module, name):
                setattr(module, name, value)
