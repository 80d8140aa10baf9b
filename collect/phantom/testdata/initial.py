"""Draws large tensors on the host and reads each in another way. The values must be those that torch draws."""

import copy
import ctypes
import faulthandler
import hashlib
import io
import json
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, sys.argv[1])
import numpy
import phantom_init
import torch
from torch.utils._python_dispatch import TorchDispatchMode

faulthandler.enable()  # installs a handler of SIGSEGV
init = phantom_init.install(torch)
found = {}
N = 1 << 20


def digest(data):
    return hashlib.sha256(bytes(data)).hexdigest()[:16]


def tensor(seed, shape=(1024, 1024), dtype=torch.float32):
    torch.manual_seed(seed)
    return torch.empty(shape, dtype=dtype).normal_(0, 0.02)


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


# The generator's state after each kind of tensor, and the drawn values.
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    for count in (N, N + 3):
        torch.manual_seed(1)
        torch.rand(5)
        normal = torch.empty(count, dtype=dtype).normal_(1, 2)
        between = torch.rand(3).tolist()
        uniform = torch.empty(count, dtype=dtype).uniform_(-3, 5)
        key = f"{dtype} {count}"
        found[key] = [between, torch.rand(3).tolist(), torch.randn(3).tolist(), torch.get_rng_state().sum().item()]
        for name, drawn in (("normal", normal), ("uniform", uniform)):
            found[f"{name} {key}"] = digest(drawn.view(torch.uint8).numpy())
torch.manual_seed(2)
trunc = torch.nn.init.trunc_normal_(torch.empty(N), 0.5, 2, -1, 2)
found["trunc_normal_"] = [torch.rand(1).item(), digest(trunc.numpy())]
own = torch.Generator().manual_seed(3)
drawn = torch.randn(N, generator=own)
found["generator"] = [torch.rand(1, generator=own).item(), digest(drawn.numpy())]

# Values after casts on the host, as before a copy to the device.
for dtype in (torch.bfloat16, torch.float64):
    torch.manual_seed(4)
    module = torch.nn.Linear(1024, 1024)
    found[f"cast {dtype}"] = digest(module.to(dtype).weight.detach().view(torch.uint8).numpy())
    found[f"cast twice {dtype}"] = digest(module.to(torch.float16).to(dtype).weight.detach().view(torch.uint8).numpy())
found["cast of what has no size"] = type(torch.nn.LazyLinear(10).to("cuda").half().weight).__name__


class Wrapper(torch.Tensor):
    """A tensor that wraps another one and has no memory of its own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args, kwargs = torch.utils._pytree.tree_map_only(cls, lambda t: t.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(torch.Tensor, cls, function(*args, **kwargs))


torch.manual_seed(5)
holder = torch.nn.Module()
holder.register_buffer("w", Wrapper(torch.empty(1024, 1024).normal_()))
found["cast of a wrapper"] = digest(holder.to(torch.bfloat16).w.inner.view(torch.uint8).numpy())

# Each line reads a tensor in another way.
libc = ctypes.CDLL(None)


def address(view):
    return ctypes.byref(ctypes.c_char.from_buffer(view.cast("B")))


found["item"] = tensor(10)[1023, 1023].item()
found["sum"] = tensor(11).sum().item()
found["repr"] = repr(tensor(12))
found["clone"] = digest(tensor(13).clone().numpy())
found["equal"] = torch.equal(tensor(14), tensor(14))
found["transposed"] = digest(tensor(15).T.contiguous().numpy())
found["deepcopy"] = digest(copy.deepcopy(tensor(16)).numpy())
found["pickle"] = digest(pickle.loads(pickle.dumps(tensor(17))).numpy())
buffer = io.BytesIO()
torch.save({"w": tensor(18)}, buffer)
buffer.seek(0)
found["save"] = digest(torch.load(buffer)["w"].numpy())
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "w")
    torch.save(tensor(19), path)
    found["save to a file"] = digest(torch.load(path).numpy())
    torch.save(tensor(20), path, _use_new_zipfile_serialization=False)
    found["save the old way"] = digest(torch.load(path).numpy())
    tensor(21).numpy().tofile(path)
    found["tofile"] = digest(numpy.fromfile(path, numpy.float32))
    with open(path, "wb", buffering=0) as file:
        file.write(memoryview(tensor(22).numpy()))
    found["write"] = digest(numpy.fromfile(path, numpy.float32))
    with open(path, "rb", buffering=0) as file:
        into = tensor(23)
        file.readinto(memoryview(into.numpy()).cast("B"))
    found["readinto"] = digest(into.numpy())
    with open(path, "w+b", buffering=0) as file:
        at = file.fileno()

        def kept():
            return digest(numpy.fromfile(path, numpy.float32))

        def read_back(read):
            into = tensor(62)
            read([into.numpy().data])
            return digest(into.numpy())

        for name, write, read in (
            ("v", os.writev, lambda parts: (os.lseek(at, 0, os.SEEK_SET), os.readv(at, parts))),
            ("v at", lambda f, parts: os.pwritev(f, parts, 0), lambda parts: os.preadv(at, parts, 0)),
            (" at", lambda f, parts: os.pwrite(f, parts[0], 0), lambda p: libc.pread(at, address(p[0]), N * 4, 0)),
        ):
            os.lseek(at, 0, os.SEEK_SET)
            write(at, [tensor(60).numpy().data])
            found[f"write{name}"] = kept()
            found[f"read{name}"] = read_back(read)

# Small pieces, which a local socket accepts before anyone reads.
ours, theirs = socket.socketpair()


def piece(seed):
    return tensor(seed).numpy().data.cast("B")[: 1 << 14]


for name, send, receive in (
    ("", lambda p: ours.send(p), lambda p: theirs.recv_into(p)),
    ("to", lambda p: libc.sendto(ours.fileno(), address(p), len(p), 0, None, 0), lambda p: theirs.recvfrom_into(p)),
    ("msg", lambda p: ours.sendmsg([p]), lambda p: theirs.recvmsg_into([p])),
):
    found[f"send{name}"] = send(piece(63))
    into = piece(64)
    receive(into)
    found[f"received{name}"] = digest(into)
raw = tensor(24)
found["memmove"] = digest(ctypes.string_at(raw.data_ptr() + 4096, 8192))
libc.realloc.restype = ctypes.c_void_p
block = ctypes.c_void_p()
libc.posix_memalign(ctypes.byref(block), 64, 2 << 20)
ctypes.memset(block.value, 7, 2 << 20)
grown = ctypes.c_void_p(libc.realloc(block, ctypes.c_size_t(5 << 20)))
found["realloc"] = digest(ctypes.string_at(grown.value, 2 << 20))
libc.free(grown)
written = tensor(25)
written[7].zero_()
found["written"] = digest(written.numpy())
found["shared"] = digest(tensor(26).share_memory_().numpy())
with torch.inference_mode():
    found["inference"] = digest((tensor(27) + 1).numpy())
with Passing():
    found["dispatch mode"] = tensor(28).mul(2).sum().item()
found["vmap"] = torch.vmap(torch.sum)(tensor(29)).sum().item()
leaf = tensor(30).requires_grad_()
(leaf * leaf).sum().backward()
found["backward"] = digest(leaf.grad.numpy())
torch.set_num_threads(4)
left, right = tensor(31, (4096, 1024)), tensor(32, (4096, 1024))
found["threads of an operator"] = digest((left + right).numpy())
both = tensor(33, (4096, 1024)).numpy()
sums = [0.0] * 4


def add(i):
    sums[i] = float(both[i::4].astype(numpy.float64).sum())


threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
found["threads"] = sums
twice = tensor(34)
twice.uniform_()
found["drawn twice"] = digest(twice.numpy())
for name, whole in (("written", torch.ones(N)), ("deferred", tensor(37))):
    part = torch.from_numpy(whole.numpy()[: (1 << 18) + 16])  # begins at the same address as whole
    part.uniform_()
    found[f"a part of what is {name}"] = [digest(part.numpy()), digest(whole.numpy())]
torch.set_num_threads(1)


class Rung(Exception):
    pass


def ring(*_):
    raise Rung


signal.signal(signal.SIGALRM, ring)
late = tensor(38, (8192, 4096))
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    late.sum()
    time.sleep(60)
except Rung:
    found["a handler that raises meanwhile"] = late.sum().item()
before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
found["signals held back"] = digest(tensor(39).numpy())
signal.pthread_sigmask(signal.SIG_SETMASK, before)
inherited = tensor(35)
queue = multiprocessing.get_context("fork").SimpleQueue()


def read_in_child():
    made = init.counts()[1] if init else 0
    queue.put([digest(inherited.numpy()), (init.counts()[1] if init else 0) - made])


child = multiprocessing.get_context("fork").Process(target=read_in_child)
child.start()
found["fork"] = [*queue.get(), digest(inherited.numpy())]
child.join()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tensor(36)), batch_size=512, num_workers=2)
found["loader"] = digest(torch.cat([x for (x,) in loader]).numpy())

# The script never reads these tensors.
before = init.counts() if init else (0, 0)
torch.manual_seed(40)
large = [torch.nn.Linear(4096, 4096) for _ in range(8)]
moved = [module.bfloat16().cuda() for module in large]
sent = [torch.randn(64, 3, 224, 224).cuda() for _ in range(5)]
found["after"] = torch.rand(1).item()
with open("/proc/self/status") as status:
    resident = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in status if line.startswith("Vm")}
counts = init.counts() if init else (0, 0)
json.dump(
    {
        "found": found,
        "deferred": counts[0] - before[0],
        "made": counts[1] - before[1],
        "all": counts[0],
        "kept": len(init._recipes) if init else 0,
        "high_mib": resident["VmHWM"],
    },
    sys.stdout,
)
