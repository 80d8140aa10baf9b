"""Uses private parts of torch: private names, and how torch's functions are built. No other module of the phantom GPU
does. The agent's module for this is torch_compat.py.

:data:`FEATURES` lists what is lost if a version of torch lacks a name. If a name is missing, the code that needs it
gets None or a function that does nothing, and continues without the feature.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

# The agent loads this module by its path, as it loads plugins. The entry in sys.modules lets the modules beside it
# import it too.
sys.modules.setdefault("phantom_torch", sys.modules[__name__])

COMPILERS = ("torch._inductor.", "triton.")
"""Modules that time kernels of compiled code."""

FEATURES = {
    "graph_task": "a read in a backward hook is listed without its line",
    "waits_for_backward": "a read in a backward hook is listed without its line",
    "tensor_address": "the phantom GPU knows no values",
    "apply": "a model that changes its type on the host uses host memory",
    "truncated_normal": "tensors that trunc_normal_ draws use host memory; torch 2.15 has another one",
    "groups": "no rank can run alone, and object collectives fail",
    "fake_group": "no rank can run alone",
    "split_source": "this torch does not split communicators",
}
"""The features of torch that this module uses, with what is lost without each."""


def missing(torch: Any) -> list[str]:
    """The features that the installed torch lacks, as far as that is visible without using them."""
    engine = sys.modules.get("torch.autograd.graph")
    found = {
        "graph_task": hasattr(torch._C, "_current_graph_task_id"),
        "waits_for_backward": hasattr(engine, _ENGINE),
        "tensor_address": hasattr(torch.Tensor, "_cdata"),
        "apply": all(_has_nested(torch.nn.Module, change) for change in TYPE_CHANGES),
        "truncated_normal": truncated_normal(torch) is not None,
    }
    if torch.distributed.is_available():
        from torch.distributed import distributed_c10d as c10d

        groups = Groups(c10d)
        found["groups"] = groups.is_complete()
        found["fake_group"] = groups.fake() is not None
        found["split_source"] = hasattr(c10d, SPLIT_SOURCE)
    return [feature for feature in FEATURES if not found.get(feature)]


def install(_torch: Any) -> None:
    """Does nothing. The agent calls install() of every module that it loads."""


# -- autograd

_ENGINE = "_engine_run_backward"


def graph_task(torch: Any) -> Callable[[], int]:
    """Returns a function that gives the number of the run of autograd's engine that this thread is inside of; -1 =
    none."""
    return getattr(torch._C, "_current_graph_task_id", lambda: -1)


def waits_for_backward(frame: Any) -> bool:
    """Whether a thread with this frame waits for autograd's engine."""
    while frame is not None:
        if frame.f_code.co_name == _ENGINE:
            return True
        frame = frame.f_back
    return False


def is_tensor(value: Any) -> bool:
    return hasattr(value, "_cdata")


def tensor_address(tensor: Any) -> int:
    """The address of the C++ object behind a Python tensor."""
    return tensor._cdata


# -- modules and their initial values

TYPE_CHANGES = frozenset(
    ("Module.to.<locals>.convert",)
    + tuple(f"Module.{name}.<locals>.<lambda>" for name in ("type", "float", "double", "half", "bfloat16"))
)
"""The qualified names of the functions with which a module's own methods that change its type call :func:`apply`. A
function of other code may fail if it is called with an empty tensor to find out a type."""


def _has_nested(module: Any, change: str) -> bool:
    _, method, _, name = change.split(".")
    code = getattr(module, method).__code__
    return any(isinstance(const, types.CodeType) and const.co_name == name for const in code.co_consts)


def replace_apply(torch: Any, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replaces ``Module._apply``, through which a module changes all of its tensors, by what ``wrapper`` makes of
    it."""
    module = torch.nn.Module
    module._apply = wrapper(module._apply)


def truncated_normal(torch: Any) -> Callable[..., Any] | None:
    """torch's function behind ``trunc_normal_``, or None if the number of values that it draws is unknown, as in torch
    2.15, which draws until all values are within the bounds."""
    function = getattr(torch.nn.init, "_no_grad_trunc_normal_", None)
    return function if function is not None and "erfinv_" in function.__code__.co_names else None


def replace_truncated_normal(torch: Any, function: Callable[..., Any]) -> None:
    torch.nn.init._no_grad_trunc_normal_ = function


# -- process groups

SPLIT_SOURCE = "_get_split_source"
"""The method that returns the communicator from which a new group is split; since torch 2.5."""
NEW_GROUP = "_new_process_group_helper"
"""The function that makes every new process group."""


class Groups:
    """The process groups that ``torch.distributed`` knows."""

    NAMES = (
        NEW_GROUP,
        "_get_default_store",
        "_get_object_coll_device",
        "_process_group_name",
        "_rank_not_in_group",
        "_tensor_to_object",
        "_world",
    )

    def __init__(self, c10d: Any) -> None:
        self._c10d = c10d

    def is_complete(self) -> bool:
        world = getattr(self._c10d, "_world", None)
        return all(hasattr(self._c10d, name) for name in self.NAMES) and hasattr(world, "pg_map")

    def lacks_this_rank(self, group: Any) -> bool:
        return self._c10d._rank_not_in_group(group)

    def moves_objects_by_host(self, group: Any) -> bool:
        return self._c10d._get_object_coll_device(group) == "cpu"

    def store(self) -> Any:
        """The store at which all ranks met."""
        return self._c10d._get_default_store()

    def is_alive(self, group: Any) -> bool:
        return group in self._c10d._world.pg_map

    def names(self) -> dict[Any, str]:
        """The names of all groups. torch takes the number of names to name the next group."""
        return self._c10d._world.pg_names

    def replace_namer(self, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replaces the function that names each new group by what ``wrapper`` makes of it."""
        self._c10d._process_group_name = wrapper(self._c10d._process_group_name)

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        """A context in which a new group gets this name."""
        before = self._c10d._process_group_name
        self._c10d._process_group_name = lambda *_args, **_kwargs: name
        try:
            yield
        finally:
            self._c10d._process_group_name = before

    def replace(self, name: str, function: Callable[..., Any]) -> None:
        """Replaces torch's function ``name``, if torch has it."""
        if hasattr(self._c10d, name):
            setattr(self._c10d, name, function)

    def new_group(self) -> Callable[..., Any]:
        """The function named :data:`NEW_GROUP`."""
        return getattr(self._c10d, NEW_GROUP)

    def repeat(self, function: Callable[..., Any], call: inspect.BoundArguments, moves: Any) -> None:
        """Runs one of torch's functions that send objects once more, with the methods of ``moves`` in place of the
        collectives of the same names. Since the code is torch's own, it allocates what this version of torch allocates.
        The run unpickles nothing, and its result is unused."""
        inner = inspect.unwrap(function)
        names = dict(vars(self._c10d), _tensor_to_object=lambda *_args, **_kwargs: None)
        methods = [name for name in dir(type(moves)) if not name.startswith("_") and name in names]
        names.update((name, getattr(moves, name)) for name in methods)
        repeated = types.FunctionType(inner.__code__, names, inner.__name__, inner.__defaults__, inner.__closure__)
        repeated.__kwdefaults__ = inner.__kwdefaults__
        args = [list(a) if isinstance(a, list) else a for a in call.args]
        kwargs = {k: list(a) if isinstance(a, list) else a for k, a in call.kwargs.items()}
        repeated(*args, **kwargs)

    # The fake group is a backend of torch whose collectives move nothing.

    def fake(self) -> Any:
        """The class of the fake group, or None in a torch without one."""
        try:
            from torch._C._distributed_c10d import FakeProcessGroup
        except ImportError:
            return None
        return FakeProcessGroup

    def make_fake(self, rank: int, size: int) -> Any:
        fake = self.fake()
        return fake._create_internal(rank, size, fake.Options())

    def count_fake(self) -> None:
        """Gives the fake group a sequence number, which is always 0: torch's own fake group has none and raises an
        error when asked for one."""
        fake = self.fake()
        fake._set_sequence_number_for_group = lambda _group: None
        fake._get_sequence_number_for_group = lambda _group: 0

    def gloo_options(self) -> dict[str, Any]:
        """Classes that gloo's group needs for its options, by name."""
        gloo = self._c10d.ProcessGroupGloo
        return {name: getattr(gloo, name, None) for name in ("_Options", "Options")}


def backend_of(torch: Any, group: Any, device: Any) -> Any:
    """The backend that moves a device's tensors in a group, as the dispatcher wraps it."""
    return torch.distributed.ProcessGroup.unbox(group)._get_backend(device)


def work_of(torch: Any, future: Any) -> Any:
    """A collective's work object, as the dispatcher wraps it, that is done when the future is done."""
    return torch._C._distributed_c10d._create_work_from_future(future).boxed()
