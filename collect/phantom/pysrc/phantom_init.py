"""Defers the initial values of large host tensors until they are read.

A script that builds its model on the host and moves it to the device draws billions of numbers that a phantom GPU does
not keep. With this module, ``normal_`` and ``uniform_`` on a large host tensor draw nothing. The generator advances as
if they had drawn their numbers. The tensor's memory is deferred (csrc/deferred.c): it has no pages, and its first
access, by any code, makes the values that torch would have drawn. So a script sees no difference except in time and
memory.

If a module then changes its type (``model.bfloat16()``), the result is deferred too. ``trunc_normal_``, which passes
over its tensor five times, is deferred as a whole. Any other operation on deferred memory makes its values, and a fork
makes all values.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import phantom_torch

SMALLEST = 1 << 20
"""Bytes from which on deferring a tensor is worth while. From this size on, blocks of torch's allocator have pages of
their own (deferred.c)."""

_Maker = ctypes.CFUNCTYPE(None, ctypes.c_uint64)


class _Recipe:
    """How to make a tensor's values: the initialiser, the generator's state before it, and the later casts."""

    __slots__ = ("after", "before", "casts", "dtype", "fill", "numel")

    def __init__(self, fill: Callable[[Any, Any], Any], numel: int, dtype: Any, before: Any, after: Any) -> None:
        self.fill, self.numel, self.dtype, self.before, self.after = fill, numel, dtype, before, after
        self.casts: tuple[Any, ...] = ()

    def cast(self, dtype: Any) -> _Recipe:
        copy = _Recipe(self.fill, self.numel, self.dtype, self.before, self.after)
        copy.casts = (*self.casts, dtype)
        return copy


class Init:
    """The state of this module once it is installed."""

    def __init__(self, torch: Any, phantom: ctypes.CDLL) -> None:
        self._torch = torch
        self._phantom = phantom
        self._recipes: dict[int, _Recipe] = {}
        self._numbers = itertools.count(1)
        self._agreed: dict[tuple[str, Any], bool] = {}
        self._local = threading.local()  # its attribute `makes`: whether this thread is making a tensor
        self._word_draws = {torch.float32: 1, torch.bfloat16: 1, torch.float16: 1, torch.float64: 2}
        self._library: Any = None
        self._plain = (torch.Tensor, torch.nn.Parameter)
        self._maker = _Maker(self._make)  # a reference must stay, since C calls this function

    def counts(self) -> tuple[int, int]:
        """The number of tensors deferred so far, and how many of these were then made."""
        counts = (ctypes.c_uint64 * 2)()
        self._phantom.phantom_deferred_counts(counts)
        return counts[0], counts[1]

    # -- deferring

    def _whole(self, tensor: Any) -> bool:
        """Whether a tensor fills a block that has pages of its own, and has a type whose draws from the generator are
        known."""
        torch = self._torch
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.dtype not in self._word_draws:
            return False
        size = tensor.numel() * tensor.element_size()
        if (
            size < SMALLEST
            or getattr(self._local, "makes", False)
            or tensor.storage_offset()
            or not tensor.is_contiguous()
            or tensor.is_neg()
        ):
            return False
        storage = tensor.untyped_storage()
        return storage.nbytes() == size and self._phantom.phantom_deferrable(storage.data_ptr())

    def _defer(self, tensor: Any, recipe: _Recipe) -> bool:
        # The recipe exists before its number is known elsewhere, so no lock is needed. A lock would not be safe: a
        # signal handler may run at each line, and raise or read deferred memory, and a child inherits the locks of
        # threads that it does not have.
        storage, number = tensor.untyped_storage(), next(self._numbers)
        self._recipes[number] = recipe
        if not self._phantom.phantom_defer(storage.data_ptr(), storage.nbytes(), number):
            self._recipes.pop(number, None)
            return False
        self._forget()
        return True

    def _forget(self) -> None:
        """Drops the recipes of tensors that no longer exist."""
        room = 256
        numbers = (ctypes.c_uint64 * room)()
        while count := self._phantom.phantom_deferred_dropped(numbers, room):
            for number in numbers[:count]:
                self._recipes.pop(number, None)

    def _draw(self, tensor: Any, generator: Any, draws: int, fill: Callable[[Any, Any], Any]) -> bool:
        """Defers an initialiser that takes draws words from the generator."""
        generator = generator or self._torch.default_generator
        before = generator.get_state()
        after = before.clone()
        if not self._phantom.phantom_advance(after.data_ptr(), after.numel(), draws):
            return False
        if not self._defer(tensor, _Recipe(fill, tensor.numel(), tensor.dtype, before, after)):
            return False
        generator.set_state(after)
        return True

    def _agrees(self, name: str, dtype: Any) -> bool:
        """Whether the installed torch draws as many words for a number of this type as this module assumes. The first
        call tests it on a few numbers."""
        agrees = self._agreed.get((name, dtype))
        if agrees is None:
            count = 1 << 12
            generator = self._torch.Generator()
            state = generator.get_state()
            words = count * self._word_draws[dtype]
            known = self._phantom.phantom_advance(state.data_ptr(), state.numel(), words)
            getattr(self._torch.empty(count, dtype=dtype, device="cpu"), name)(generator=generator)
            agrees = self._agreed[(name, dtype)] = known and self._torch.equal(generator.get_state(), state)
        return agrees

    # -- making

    def _make(self, number: int) -> None:
        """Makes a deferred tensor on a separate thread, while the thread that accessed the tensor waits."""
        self._local.makes = True
        try:
            recipe = self._recipes.get(number)
            if recipe is None:  # the tensor was freed meanwhile, or its recipe replaced
                return
            self._compute(number, recipe)
            self._recipes.pop(number, None)
        except BaseException as error:  # the waiting thread is inside an instruction and can raise nothing
            sys.stderr.write(f"phantom: computing initial values failed: {type(error).__name__}: {error}\n")
            os.abort()
        finally:
            self._local.makes = False

    def _compute(self, number: int, recipe: _Recipe) -> None:
        torch = self._torch
        last = recipe.casts[-1] if recipe.casts else recipe.dtype
        size = recipe.numel * last.itemsize
        pages = self._phantom.phantom_deferred_pages(size)
        if not pages:
            raise MemoryError(f"{size} bytes")
        memory = (ctypes.c_char * size).from_address(pages)
        result = torch.frombuffer(memory, dtype=last)
        generator = torch.Generator()
        generator.set_state(recipe.before)
        with torch.no_grad(), torch.device("cpu"):
            value = result if not recipe.casts else torch.empty(recipe.numel, dtype=recipe.dtype)
            recipe.fill(value, generator)
            for dtype in recipe.casts[:-1]:
                value = value.to(dtype)
            if recipe.casts:
                result.copy_(value)
        if not torch.equal(generator.get_state(), recipe.after):
            sys.stderr.write(
                "phantom: an initialiser of this torch draws random numbers in another way than the phantom GPU"
                " assumes, so later random values differ from those on a real GPU: set PHANTOM_INIT=eager\n"
            )
        self._phantom.phantom_deferred_made(number, pages, size)

    # -- operators

    def _override(self, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
        torch = self._torch
        try:
            kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
        except RuntimeError:
            return
        if self._library is None:
            self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about the allowed override
            self._library.impl(name, make(kernel), "CPU", with_keyset=True, allow_override=True)

    def _normal(self, kernel: Any) -> Callable[..., Any]:
        def call(keyset: Any, tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
            # torch draws sixteen numbers at a time. How it draws a remainder differs between versions.
            if std >= 0 and self._whole(tensor) and tensor.numel() % 16 == 0 and self._agrees("normal_", tensor.dtype):
                draws = tensor.numel() * self._word_draws[tensor.dtype]
                if self._draw(tensor, generator, draws, lambda t, g: t.normal_(mean, std, generator=g)):
                    return tensor
            return kernel.call_boxed(keyset, tensor, mean, std, generator=generator)

        return call

    def _uniform(self, kernel: Any) -> Callable[..., Any]:
        def call(keyset: Any, tensor: Any, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Any:
            # torch itself refuses other bounds.
            if -1e4 <= low <= high <= 1e4 and self._whole(tensor) and self._agrees("uniform_", tensor.dtype):
                draws = tensor.numel() * self._word_draws[tensor.dtype]
                if self._draw(tensor, generator, draws, lambda t, g: t.uniform_(low, high, generator=g)):
                    return tensor
            return kernel.call_boxed(keyset, tensor, low, high, generator=generator)

        return call

    def _apply(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps ``Module._apply``, through which modules change type. A wrapper of the copy operator would see all
        copies. But in Python it would add ten microseconds to each copy, and turn Python numbers, which are tensors at
        that level, into floats."""
        torch = self._torch

        def apply(module: Any, change: Callable[[Any], Any], *args: Any, **kwargs: Any) -> Any:
            if getattr(change, "__qualname__", None) not in phantom_torch.TYPE_CHANGES:
                return function(module, change, *args, **kwargs)

            def changed(tensor: Any) -> Any:
                # A tensor of a type outside self._plain may have no size yet, or no memory of its own.
                if type(tensor) not in self._plain:
                    return change(tensor)
                recipe = self._recipe_of(tensor)
                if recipe is not None:
                    dtype = change(torch.empty(0, dtype=tensor.dtype, device="cpu")).dtype
                    if dtype is not tensor.dtype and dtype in self._word_draws:
                        cast = torch.empty(tensor.shape, dtype=dtype, device="cpu")
                        if self._whole(cast) and self._defer(cast, recipe.cast(dtype)):
                            tensor = cast
                return change(tensor)

            changed.__qualname__ = change.__qualname__ + "."  # marks it as done for the modules inside this one
            return function(module, changed, *args, **kwargs)

        return functools.wraps(function)(apply)

    def _recipe_of(self, tensor: Any) -> _Recipe | None:
        if not self._whole(tensor):
            return None
        number = self._phantom.phantom_deferred(tensor.untyped_storage().data_ptr())
        return self._recipes.get(number) if number else None

    def _truncated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any = None) -> Any:
            # If the mean is far from the bounds, torch warns and points at the caller.
            near = a - 2 * std <= mean <= b + 2 * std
            if type(tensor) in self._plain and near and self._whole(tensor) and self._agrees("uniform_", tensor.dtype):
                draws = tensor.numel() * self._word_draws[tensor.dtype]
                if self._draw(tensor, generator, draws, lambda t, g: function(t, mean, std, a, b, generator=g)):
                    return tensor
            return function(tensor, mean, std, a, b, generator=generator)

        return call

    def _install(self) -> None:
        self._phantom.phantom_defer_to(self._maker)
        # Without this, each child process would make its own copy of memory that all share, for example of a data set
        # that every worker reads.
        atexit.register(self._phantom.phantom_defer_at_exit)
        os.register_at_fork(before=self._phantom.phantom_make_all)
        self._override("normal_", self._normal)
        self._override("uniform_", self._uniform)
        phantom_torch.replace_apply(self._torch, self._apply)
        if function := phantom_torch.truncated_normal(self._torch):
            phantom_torch.replace_truncated_normal(self._torch, self._truncated(function))


_installed: Init | None = None


def install(torch: Any) -> Init | None:
    """Makes torch defer initial values of large host tensors from now on. Returns None, and does nothing, if no phantom
    GPU is loaded or PHANTOM_INIT is ``eager``.

    Calling it again returns the state of the first call.
    """
    global _installed
    if _installed is not None:
        return _installed
    if not sys.platform.startswith("linux") or os.environ.get("PHANTOM_INIT", "").startswith("e"):
        return None
    process = ctypes.CDLL(None)
    if not hasattr(process, "phantom_defer"):
        return None
    for name, result, arguments in (
        ("phantom_advance", ctypes.c_bool, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64)),
        ("phantom_defer_to", None, (_Maker,)),
        ("phantom_defer", ctypes.c_bool, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64)),
        ("phantom_deferrable", ctypes.c_bool, (ctypes.c_void_p,)),
        ("phantom_deferred", ctypes.c_uint64, (ctypes.c_void_p,)),
        ("phantom_deferred_counts", None, (ctypes.c_void_p,)),
        ("phantom_deferred_pages", ctypes.c_void_p, (ctypes.c_size_t,)),
        ("phantom_deferred_made", None, (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)),
        ("phantom_defer_at_exit", None, ()),
        ("phantom_make_all", None, ()),
        ("phantom_deferred_dropped", ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_size_t)),
    ):
        function = getattr(process, name)
        function.restype, function.argtypes = result, arguments
    init = Init(torch, process)
    init._install()
    _installed = init
    return init
