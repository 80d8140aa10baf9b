"""Values that a script reads from a phantom GPU.

No kernel computes anything on a phantom GPU, and values steer programs: a read that gives what an earlier tenant of
the memory left takes a branch at random. This module keeps track of which small tensors have their values on the
device for real: those that came from the host, and what a few operators (``DERIVED``) make of known integers and
booleans; their CPU kernels are run beside the CUDA kernels that do nothing, straight on the phantom device's
memory, which is host memory. Then

* a read (``.item()``, ``.cpu()``, ``.tolist()``, ``print``) of anything else gives zeros, and :meth:`Values.reads`
  says where in the script it was;
* an operator that reads a count to know how large its output is (``unique``, ``nonzero``, boolean indexing,
  ``repeat_interleave``) gets it: exactly, where its input is known, else as an upper bound, which
  :meth:`Values.guesses` counts.

It works below autograd, as CUDA kernels of the dispatcher, so that it sees operators in backward hooks and on the
autograd engine's threads. A ``TorchFunctionMode`` would not; a ``TorchDispatchMode`` would change what is measured
(under one, autograd no longer accumulates gradients in place); a callback for each allocation
(``torch.cuda._gpu_trace``), to zero fresh blocks, loses the exception that is being raised when a tensor dies. The
CUDA kernels run as before, so allocations are those of the device.

``install(torch)`` is called once after ``import torch``; it needs no CUDA to be initialised and does not initialise it.
"""

from __future__ import annotations

import collections
import ctypes
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

KNOWN_BYTES = 1 << 20
"""Integer and boolean tensors of more bytes are not followed: computing them on the host would cost more than a bound
is worth."""

COPIED_BYTES = 64 << 10
"""The same for other types, which are not computed with: the library really copies so much (PHANTOM_COPY)."""

DERIVED = (
    "arange",
    "arange.start",
    "arange.start_step",
    "bitwise_not",
    "cat",
    "clone",
    "eq.Scalar",
    "ge.Scalar",
    "gt.Scalar",
    "le.Scalar",
    "logical_not",
    "lt.Scalar",
    "ne.Scalar",
)
"""Operators whose results are followed: functional ones (an in-place change makes a tensor unknown), and none that
takes a Python number for a tensor, since that cannot be handed on to the CUDA kernel with its type promotion intact."""


class _Answers(threading.local):
    """Whether this thread is inside an operator that has been given its answer: reads inside it are then answered.

    ``learned`` is the storage that the copy which this thread is inside of has made known.
    """

    given = False
    learned: int | None = None


class Values:
    """The state of an installed module: which tensors are known, what was guessed, and what was read unknown."""

    def __init__(self, torch: Any, phantom: ctypes.CDLL) -> None:
        self._torch = torch
        self._phantom = phantom
        # storage -> (its finalizer, the tensor's version when its values were written)
        self._known: dict[int, tuple[weakref.finalize, int]] = {}
        self._guesses: collections.Counter[str] = collections.Counter()
        self._exact: collections.Counter[str] = collections.Counter()
        self._reads: collections.Counter[str] = collections.Counter()
        self._lock = threading.RLock()
        self._answers = _Answers()
        self._libraries: dict[str, Any] = {}
        # Code that is not the script's own.
        self._outside = (os.path.dirname(torch.__file__) + os.sep, __file__)

    def guesses(self) -> dict[str, int]:
        """How often each operator's size was an upper bound, so far."""
        with self._lock:
            return dict(self._guesses)

    def exact(self) -> dict[str, int]:
        """How often each operator's size was computed from known values, so far."""
        with self._lock:
            return dict(self._exact)

    def reads(self) -> dict[str, int]:
        """How often values that nobody knows were read at each ``file:line``, so far. They read as zeros."""
        with self._lock:
            return dict(self._reads)

    def notes(self) -> list[str]:
        """What the library estimated, refused or left out so far, a sentence each."""
        size = self._phantom.phantom_notes(None, 0) + 1
        text = ctypes.create_string_buffer(size)
        self._phantom.phantom_notes(text, size)
        return text.value.decode(errors="replace").splitlines()

    # -- known tensors

    def is_known(self, tensor: Any) -> bool:
        """Whether the values of a CUDA tensor stand in its memory, and nothing has changed it since."""
        if tensor.numel() == 0:
            return True
        if not self._followed(tensor):
            return False
        entry = self._known.get(tensor.untyped_storage()._cdata)
        return entry is not None and entry[1] == _version(tensor)

    def _followed(self, tensor: Any) -> bool:
        if not tensor.is_cuda or tensor.layout is not self._torch.strided:
            return False
        return tensor.untyped_storage().nbytes() <= (KNOWN_BYTES if _is_integral(tensor) else COPIED_BYTES)

    def _learn(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        with self._lock:
            before = self._known.pop(key, None)
            if before is not None:
                before[0].detach()
            finalizer = weakref.finalize(storage, self._known.pop, key, None)
            finalizer.atexit = False
            self._known[key] = (finalizer, _version(tensor))

    def _on_host(self, tensor: Any) -> Any:
        """A CPU tensor over the memory of a CUDA tensor."""
        torch = self._torch
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        if size == 0:
            return torch.empty(tensor.shape, dtype=tensor.dtype)
        memory = (ctypes.c_char * size).from_address(storage.data_ptr())
        flat = torch.frombuffer(memory, dtype=torch.uint8).view(tensor.dtype)
        return flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    # -- kernels

    def _override(
        self,
        name: str,
        make: Callable[[str, Any], Callable[..., Any]],
        key: str = "CUDA",
        namespace: str = "aten",
    ) -> None:
        """Puts a kernel around an operator's CUDA kernel; an operator that this torch lacks stays away."""
        torch = self._torch
        full = f"{namespace}::{name}"
        # A kernel of ours would cut a composite operator off from the autograd of its parts.
        if torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
            return
        try:
            kernel = torch.library.get_kernel(full, key)
        except RuntimeError:
            return
        library = self._libraries.get(namespace)
        if library is None:
            library = self._libraries[namespace] = torch.library.Library(namespace, "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about the override that was just allowed
            library.impl(name, make(name, kernel), key, with_keyset=True, allow_override=True)

    def _derived(self, name: str, kernel: Any) -> Callable[..., Any]:
        torch = self._torch
        operator, _, overload = name.partition(".")
        function = getattr(getattr(torch.ops.aten, operator), overload or "default")

        def call(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            result = kernel.call_boxed(keyset, *args, **kwargs)
            if isinstance(result, torch.Tensor) and _is_integral(result) and self._followed(result) and result.numel():
                inputs = [a for a in _tensors(torch, (args, kwargs)) if a.is_cuda]
                if all(self.is_known(a) for a in inputs):
                    self._compute(function, result, args, kwargs)
            return result

        return call

    def _compute(self, function: Any, result: Any, args: Any, kwargs: Any) -> None:
        torch = self._torch
        args, kwargs = self._to_host(args), self._to_host(kwargs)
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        try:
            value = function(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError):  # not on the CPU, not with these types: the values stay unknown
            return
        self._on_host(result).copy_(value)
        self._learn(result)

    def _to_host(self, value: Any) -> Any:
        torch = self._torch
        if isinstance(value, torch.Tensor):
            return self._on_host(value) if value.is_cuda else value
        if isinstance(value, (list, tuple)):
            return [self._to_host(item) for item in value]
        if isinstance(value, dict):
            return {key: self._to_host(item) for key, item in value.items()}
        return value

    def _copy(self, _name: str, kernel: Any) -> Callable[..., Any]:
        def call(keyset: Any, to: Any, source: Any, non_blocking: bool = False) -> Any:
            result = kernel.call_boxed(keyset, to, source, non_blocking)
            if not to.is_cuda:
                if source.is_cuda and to.device.type == "cpu" and not self._answers.given and not self.is_known(source):
                    to.zero_()
                    self._unknown_read()
            elif self._followed(to) and (self.is_known(source) if source.is_cuda else source.device.type == "cpu"):
                self._on_host(to).copy_(self._to_host(source))
                # A part says nothing about the rest.
                if to.numel() * to.element_size() == to.untyped_storage().nbytes():
                    self._learn(to)
                    self._answers.learned = to.untyped_storage()._cdata
            return result

        return call

    def _copied(self, _name: str, kernel: Any) -> Callable[..., Any]:
        """A copy that a script (or a collective) calls counts one version when it is done, after its CUDA kernel has
        run; one inside ``.cuda()`` counts none."""

        def call(keyset: Any, to: Any, source: Any, non_blocking: bool = False) -> Any:
            self._answers.learned = None
            result = kernel.call_boxed(keyset, to, source, non_blocking)
            if to.is_cuda and self._answers.learned == to.untyped_storage()._cdata:
                self._learn(to)
            return result

        return call

    def _gathered(self, _name: str, kernel: Any) -> Callable[..., Any]:
        """The peers are copies of this rank: what it gathers from each is what it gives."""

        def call(keyset: Any, outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            result = kernel.call_boxed(keyset, outputs, inputs, *args, **kwargs)
            for gathered, given in zip(outputs, inputs, strict=False):
                for to in gathered if self.is_known(given) else ():
                    if self._followed(to) and to.shape == given.shape:
                        self._on_host(to).copy_(self._on_host(given))
                        self._learn(to)
            return result

        return call

    def _scalar(self, _name: str, kernel: Any) -> Callable[..., Any]:
        phantom = self._phantom

        def call(keyset: Any, tensor: Any) -> Any:
            if self._answers.given or self.is_known(tensor):
                return kernel.call_boxed(keyset, tensor)
            self._unknown_read()
            phantom.phantom_answer(0)
            try:
                return kernel.call_boxed(keyset, tensor)
            finally:
                phantom.phantom_answer(-1)

        return call

    def _unknown_read(self) -> None:
        site = _site(self._outside)
        with self._lock:
            self._reads[site] += 1

    def _answered(
        self, bound: Callable[..., int], count: Callable[..., int]
    ) -> Callable[[str, Any], Callable[..., Any]]:
        phantom = self._phantom

        def make(name: str, kernel: Any) -> Callable[..., Any]:
            def call(keyset: Any, *args: Any, **kwargs: Any) -> Any:
                tensor = args[0]
                if tensor.numel() == 0:
                    return kernel.call_boxed(keyset, *args, **kwargs)
                if self.is_known(tensor):
                    size = count(self._on_host(tensor), *args[1:], **kwargs)
                    tally = self._exact
                else:
                    size = bound(*args, **kwargs)
                    tally = self._guesses
                with self._lock:
                    tally[name] += 1
                phantom.phantom_answer(size)
                self._answers.given = True
                try:
                    return kernel.call_boxed(keyset, *args, **kwargs)
                finally:
                    self._answers.given = False
                    phantom.phantom_answer(-1)

            return call

        return make

    def _install(self) -> None:
        torch = self._torch
        for name in DERIVED:
            self._override(name, self._derived)
        self._override("copy_", self._copy)
        self._override("copy_", self._copied, key="ADInplaceOrView")
        self._override("allgather_", self._gathered, namespace="c10d")
        self._override("_local_scalar_dense", self._scalar)
        along = self._answered(
            lambda t, dim, *a, **k: t.size(dim),
            lambda t, dim, *a, **k: torch.unique(t, dim=dim).size(dim),
        )
        along_runs = self._answered(
            lambda t, dim, *a, **k: t.size(dim),
            lambda t, dim, *a, **k: torch.unique_consecutive(t, dim=dim).size(dim),
        )
        everywhere = self._answered(lambda t, *a, **k: t.numel(), lambda t, *a, **k: torch.unique(t).numel())
        runs = self._answered(
            lambda t, *a, **k: t.size(k["dim"]) if k.get("dim") is not None else t.numel(),
            lambda t, *a, **k: torch.unique_consecutive(t, dim=k.get("dim")).size(k.get("dim") or 0),
        )
        self._override("unique_dim", along)
        self._override("unique_dim_consecutive", along_runs)
        self._override("_unique2", everywhere)
        self._override("unique_consecutive", runs)
        self._override("nonzero", self._answered(lambda t: t.numel(), lambda t: int(torch.count_nonzero(t))))
        self._override(
            "repeat_interleave.Tensor",
            self._answered(lambda t, **k: k.get("output_size") or t.numel(), lambda t, **k: int(t.sum())),
        )


def _tensors(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(torch, item)]
    return []


def _is_integral(tensor: Any) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def _version(tensor: Any) -> int:
    # Inference tensors count no versions; a change in place of one that came from the host goes unseen.
    return -1 if tensor.is_inference() else tensor._version


def _site(outside: tuple[str, ...]) -> str:
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(outside):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


_installed: Values | None = None


def install(torch: Any) -> Values | None:
    """Follows values from now on. Gives None, and does nothing, where no phantom GPU is loaded.

    Calling it again gives the state of the first call.
    """
    global _installed
    if _installed is not None:
        return _installed
    if not sys.platform.startswith("linux"):
        return None
    process = ctypes.CDLL(None)
    if not hasattr(process, "phantom_answer"):
        return None
    process.phantom_answer.argtypes = [ctypes.c_int64]
    process.phantom_answer.restype = None
    process.phantom_notes.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    process.phantom_notes.restype = ctypes.c_size_t
    values = Values(torch, process)
    values._install()
    _installed = values
    return values
