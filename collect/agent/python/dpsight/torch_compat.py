"""The only module of the agent that uses private parts of torch and of the interpreter: private names, and how private
objects are built.

Each function is looked up once, so a hook costs no more than with torch's own name. A function that the installed torch
lacks is None, or finds nothing. torch_probes.py describes what each feature provides, and what is lost without it.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from dpsight.interruptions import by_script

Function = Callable[..., Any]

# Modules of torch that are hooked when the script imports them.
EXPANDED_WEIGHTS = "torch.nn.utils._expanded_weights.expanded_weights_utils"
FSDP2 = "torch.distributed.fsdp._fully_shard._fully_shard"
FSDP2_GROUPS = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
INDUCTOR = "torch._inductor.compile_fx"
NAMED_OPTIMIZER = "torch.distributed.optim.named_optimizer"  # its class has init_state, which steps with zero gradients
OPS = "torch._ops"  # calls an operator by name
STATE_DICT = "torch.distributed.checkpoint.state_dict"

# Attributes of torch that hooks replace.
CALL = "_call_impl"  # of Module: every call goes through it
ENGINE = "_execution_engine"  # of Variable: every backward goes through it
ENGINE_THREADS = "pt_autograd"  # the names of the engine's threads begin with it
WATCHDOGS = "pt_nccl_watchdg"  # so do names of threads that watch NCCL's collectives, one for each process group
INIT_STATE = "_init_optim_state"  # of STATE_DICT: steps with zero gradients, so that there is state to load into
RECOMPUTATION = "_recomputation_hook"  # of torch.utils.checkpoint: the context of a recompute
RECORD_HISTORY = "_record_memory_history"  # of torch.cuda.memory
SNAPSHOT = "_snapshot"  # of torch.cuda.memory

# Attributes that every module has, in its dictionary.
CHILDREN = "_modules"
PARAMETERS = "_parameters"
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# Parts that torch's wrappers put into a module's path.
WRAPPERS = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
WRAPPERS_NAMED_BY = (  # where torch defines such a name
    ("torch.distributed.fsdp._common_utils", "FSDP_WRAPPED_MODULE"),
    ("torch.distributed.algorithms._checkpoint.checkpoint_wrapper", "_CHECKPOINT_WRAPPED_MODULE"),
)
SHARD = "_local_tensor"  # of a DTensor: the part of this rank
# Prefixes of an optimizer's attributes for its own hooks.
OPTIMIZER_HOOKS = "_optimizer_"

# Names of which a function that computes a convolution uses one, including torch's own layers and generated code.
CONVOLUTIONS = frozenset(
    ["convolution", "_convolution", "convolution_backward", "cudnn_convolution", "cudnn_convolution_transpose"]
    + [f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)]
)


# The private names of torch's functions, by the names of Private's attributes.
_FUNCTIONS = {
    "lazy_call": "cuda._lazy_call",
    "record_history": "cuda.memory._record_memory_history",
    "memory_snapshot": "_C._cuda_memorySnapshot",
    "memory_stats": "_C._cuda_memoryStats",
    "set_metadata": "_C._cuda_setMemoryMetadata",
    "attach_oom_observer": "_C._cuda_attach_out_of_memory_observer",
    "current_device": "_C._cuda_getDevice",
    "raw_stream": "_C._cuda_getCurrentRawStream",
    "record_event": "_C._CudaEventBase.record",
    "is_capturing": "_C._cuda_isCurrentStreamCapturing",
    "graph_task": "_C._current_graph_task_id",
    "sequence_number": "autograd._get_sequence_nr",
    "current_node": "_C._current_autograd_node",
    "DisableTorchFunction": "_C.DisableTorchFunction",
    "torch_function_modes": "_C._len_torch_function_stack",
    "functorch_level": "_C._functorch.peek_interpreter_stack",
    "functorch_wraps": "_C._functorch.is_functorch_wrapped_tensor",
    "functorch_unwrapped": "_C._functorch.get_unwrapped",
    "functorch_batched": "_C._functorch.is_batchedtensor",
    "dispatch_mode": "_C._get_dispatch_mode",
    "fake_key": "_C._TorchDispatchModeKey.FAKE",
    "proxy_key": "_C._TorchDispatchModeKey.PROXY",
    "tracing_state": "_C._get_tracing_state",
    "disable_dynamo": "_disable_dynamo",
}
_OPTIONAL = frozenset(("current_node",))
_CUDA = ("_C._cuda", "_C._Cuda")  # a build without CUDA need not have these


class Private:
    """torch's functions that have no public name, looked up once; None if the installed torch lacks one."""

    __slots__ = (*_FUNCTIONS, "fake_mode")

    # Memory.
    lazy_call: Function  # runs a function once CUDA is initialised
    record_history: Function  # torch's function, without the agent's wrapper
    memory_snapshot: Function
    memory_stats: Callable[[int], dict[str, Any]]
    set_metadata: Callable[[str], None]
    attach_oom_observer: Function
    # Streams.
    current_device: Callable[[], int]
    raw_stream: Callable[[int], int]
    record_event: Callable[[Any, Any], None]
    is_capturing: Callable[[], bool]  # whether the current stream's work becomes part of a graph
    # Autograd.
    graph_task: Callable[[], int]  # the run of the engine that this thread is inside of; -1 = none
    sequence_number: Callable[[], int]  # the number of the node that this thread makes next
    current_node: Callable[[], Any] | None  # the node that the engine runs in this thread
    # Types that may lie between a tensor and its storage.
    DisableTorchFunction: Function  # a context
    torch_function_modes: Callable[[], int]  # how many modes are on
    functorch_level: Callable[[], Any]  # None outside of torch.func
    functorch_wraps: Callable[[Any], bool]
    functorch_unwrapped: Callable[[Any], Any]
    functorch_batched: Callable[[Any], bool]  # whether a wrapper is vmap's
    dispatch_mode: Callable[[Any], Any]
    fake_key: Any
    fake_mode: Callable[[], Any]  # None unless something traces with fake tensors
    proxy_key: Any
    tracing_state: Callable[[], Any]  # torch.jit.trace's state in this thread; None = it does not run
    disable_dynamo: Function

    def traces(self) -> bool:
        """Whether torch.jit.trace, torch.export, make_fx or a similar tracer records operations on tensors: a question
        for a symbolic size would become part of its graph. With fake tensors nothing runs on the device."""
        if self.tracing_state() is not None or self.fake_mode() is not None:
            return True
        return self.dispatch_mode(self.proxy_key) is not None

    def look_up(self, torch: Any) -> list[str]:
        """Looks every function up. Returns the names that a recording needs and that the installed torch lacks."""
        lacking = []
        for name, path in _FUNCTIONS.items():
            try:
                found = operator.attrgetter(path)(torch)
            except AttributeError:
                found = None
                if name not in _OPTIONAL and not (torch.version.cuda is None and path.startswith(_CUDA)):
                    lacking.append(path)
            setattr(self, name, found)
        self.fake_mode = functools.partial(self.dispatch_mode or _nothing, self.fake_key)
        return lacking

    def bind(self, torch: Any) -> None:
        """Looks every function up. Raises AttributeError if the installed torch lacks one that a recording needs."""
        lacking = self.look_up(torch)
        if lacking:
            raise AttributeError(f"torch {torch.__version__} has no {', '.join(lacking)}")


def _nothing(_key: Any) -> None:
    return None


private = Private()


def records_metadata(torch: Any) -> bool:
    """Whether allocator events can carry the number of a mark, which joins events and marks."""
    return hasattr(torch._C, "_cuda_setMemoryMetadata")


# Modules.


def forward_hooks(module: Any) -> Iterable[Any]:
    """The hooks that run after a module's forward."""
    return module._forward_hooks.values()


def own_parameters(module: Any) -> Iterable[tuple[str, Any]]:
    """Names and parameters of a module, including None, without its children's."""
    return module._parameters.items()


def compile_with(module: Any, impl: Any, compile_module: Callable[[], None]) -> Function:
    """Compiles a module as if impl ran its calls, since Module.compile compiles that attribute. Returns the result."""
    vars(module)[CALL] = impl
    try:
        compile_module()
    finally:
        del vars(module)[CALL]
    return module._compiled_call_impl


def set_compiled(module: Any, function: Function) -> None:
    """Makes the calls of a compiled module run a function."""
    module._compiled_call_impl = function


def step_code(optimizer: type) -> CodeType | None:
    """The code of the function that torch puts around every optimizer's step(); None if it cannot be found."""
    wrapper = getattr(optimizer, "profile_hook_step", None)
    for constant in getattr(getattr(wrapper, "__code__", None), "co_consts", ()):
        if isinstance(constant, CodeType) and constant.co_name == "wrapper":
            return constant
    return None


# Autograd's nodes.


def saved_attributes(kind: type) -> list[str]:
    """The attributes in which nodes of this type hold saved tensors. Only these are read: to read attributes without
    "raw" would unpack, which runs hooks of the script."""
    return [a for a in dir(kind) if a.startswith("_raw_saved_")]


def node_number(node: Any) -> int:
    """A node's sequence number; -1 = it has none."""
    found = getattr(node, "_sequence_nr", None)
    return -1 if found is None else found()


def input_devices(node: Any) -> list[Any]:
    """The devices of the gradients that flow into a node. Raises RuntimeError or AttributeError if the node has lost
    its graph."""
    return [m.device for m in node._input_metadata]


def checkpoint_inputs(unpack_hook: Any) -> Iterator[Any]:
    """The objects that keep the inputs of a checkpointed block: a node, or in newer releases saved tensors without a
    node. The unpack hook of a tensor that the block saved refers to the frame that has them."""
    for cell in getattr(unpack_hook, "__closure__", None) or ():
        try:
            saver, kept = (getattr(cell.cell_contents, name, None) for name in ("input_saver", "saved_args"))
        except ValueError:
            continue
        if saver is not None and saver.grad_fn is not None:
            yield saver.grad_fn
        elif type(kept) is list:
            yield from (value for value in kept if is_saved(value))


def is_saved(value: Any) -> bool:
    """Whether a value is a saved tensor in the form in which nodes hold it."""
    return hasattr(value, "unpack_hook")


def recomputed(frame: Any, group: Any) -> list[Any]:
    """What a checkpointed block has recomputed for one run of the engine."""
    return list(getattr(frame, "recomputed", {}).get(group, {}).values())


def gradient_hooks(p: Any) -> dict[int, Any] | None:
    """The hooks that run when a parameter's gradient is complete; None if the parameter never had such a hook."""
    return p._post_accumulate_grad_hooks


# void set_post_acc_grad_hooks(const TensorBase&, std::unique_ptr<PostAccumulateGradHook>), which libtorch_cpu exports.
_SET_HOOKS = (
    "_ZN5torch8autograd4impl23set_post_acc_grad_hooksERKN2at10TensorBaseE"
    "St10unique_ptrINS0_22PostAccumulateGradHookESt14default_deleteIS7_EE"
)


@functools.cache
def _set_hooks() -> Callable[..., None] | None:
    """torch's function that makes the engine forget a dictionary of hooks. To set Python's attribute to None does not,
    and torch has no other way from Python. The function takes two pointers: to a tensor, which is a pointer to the
    object at _cdata, and to a unique_ptr to the hooks. The function's name contains both types: if torch changes one,
    nothing is found.
    """
    library = os.path.join(os.path.dirname(sys.modules["torch"].__file__ or ""), "lib", "libtorch_cpu.so")
    try:
        # RTLD_NOLOAD finds only a library that is loaded. PyDLL keeps Python's lock, which torch takes again.
        found = getattr(ctypes.PyDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW), _SET_HOOKS)
    except (OSError, AttributeError) as error:
        if by_script(error):
            raise
        return None
    found.argtypes, found.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    return found


@functools.cache
def forgets_gradient_hooks() -> bool:
    """Whether the engine can be made to forget an empty dictionary of a parameter's hooks. After the
    trial nothing may refer to the dictionary of the trial's tensor. If the trial fails, the dictionaries stay.

    Forgetting saves time: the engine takes the interpreter's lock to look into an empty dictionary. An empty dictionary
    makes a bare step one to two microseconds slower for each parameter, a tenth of a small layer's backward.
    """
    if _set_hooks() is None:
        return False
    try:
        p = sys.modules["torch"].empty(0, device="cpu", requires_grad=True)
        hooks: dict[int, Any] = {}
        unused = sys.getrefcount(hooks)
        p._post_accumulate_grad_hooks = hooks
        kept = sys.getrefcount(hooks)
        forget_gradient_hooks(p)
        return kept > unused + 1 and sys.getrefcount(hooks) == unused
    except Exception as error:
        if by_script(error):
            raise
        return False


def forget_gradient_hooks(p: Any) -> None:
    """Makes the engine forget the dictionary of a parameter's hooks, if forgets_gradient_hooks() is true."""
    set_hooks = _set_hooks()
    if set_hooks is not None:
        p._post_accumulate_grad_hooks = None
        set_hooks(ctypes.byref(ctypes.c_void_p(p._cdata)), ctypes.byref(ctypes.c_void_p(None)))


# Events.


def lasting(event: Any) -> Any:
    """Returns an event with a reference that is never released, not even when the interpreter ends.

    The reference avoids a crash: torch's destructor of an event asks for the current device. If the query fails (in a
    forked child that exits, after an error that the device keeps), the destructor ends the process. Python's own
    references would go with the module that has them.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(event))
    return event


# Tensors and storages.


def local_tensor(tensor: Any) -> Any:
    """The part of a DTensor that is on this rank; None for any other tensor."""
    return getattr(tensor, SHARD, None)


def sparse_parts(tensor: Any) -> tuple[Any, Any]:
    """Indices and values of a tensor in COO layout. The public methods refuse a tensor that is not coalesced."""
    return tensor._indices(), tensor._values()


class Weak:
    """A weak reference to a storage. A Weak does not keep the memory, and shows later whether the storage still exists.
    A weak reference of torch must be freed by hand. Weak is a class so that Python counts an object's users: threads
    share it, and a lock would stay held if a script's signal handler raised. A Weak keeps torch's functions itself:
    when the interpreter ends, modules lose their names before the last objects go."""

    __slots__ = ("_expired", "_free", "_reference")

    def __init__(self, storage: Any) -> None:
        self._expired, self._free = storage._expired, storage._free_weak_ref
        self._reference = storage._weak_ref()

    def __del__(self) -> None:
        if hasattr(self, "_reference"):
            self._free(self._reference)


def weak(storage: Any) -> Weak | None:
    """A weak reference to a storage; None if torch supports none for it."""
    return Weak(storage) if hasattr(storage, "_weak_ref") else None


def expired(ref: Weak | None) -> bool:
    """Whether the storage behind a weak reference is gone."""
    return ref is None or ref._expired(ref._reference)


# Ranks.


def bucket_makers(module: Any) -> Iterator[tuple[Any, str]]:
    """The classes and methods of torch.nn.parallel.distributed that make the flat buckets of DDP's reducer."""
    if callable(vars(module.DistributedDataParallel).get("_ddp_init_helper")):
        yield module.DistributedDataParallel, "_ddp_init_helper"
    reducer = getattr(module.dist, "Reducer", None)  # a build without torch.distributed has none
    if getattr(reducer, "_rebuild_buckets", None) is not None:
        yield reducer, "_rebuild_buckets"


GATHER, SCATTER = "_to_unsharded", "post_backward"  # of FSDPParamGroup: parameters are gathered, gradients scattered


def gathered(group: Any) -> Iterator[tuple[Any, Any, str]]:
    """The whole parameters that an FSDP2 group has gathered, their shards and their names."""
    for shared in group.fsdp_params:
        yield shared._unsharded_param, shared.sharded_param, shared._param_fqn or "sharded"


def gathered_flat(group: Any) -> Any:
    """The flat tensor with a group's parameters; None = there is none."""
    return getattr(group._all_gather_result, "all_gather_output", None)


def scattered_flat(group: Any) -> Any:
    """The flat tensor with a group's gradients; None = there is none."""
    # The latest state is this group's. Newer releases of torch keep a list of states.
    states = getattr(group.comm_ctx, "reduce_scatter_states", None) or [
        getattr(group.comm_ctx, "reduce_scatter_state", None)
    ]
    return getattr(states[-1], "reduce_scatter_input", None)


def shards(group: Any) -> list[Any]:
    """The shards of a group's parameters that this rank has."""
    return [shared.sharded_param for shared in group.fsdp_params]


def group_path(group: Any) -> str:
    """The path of the module to which a group belongs."""
    return group._module_fqn


# Dynamo.


def dynamo_skips(torch: Any) -> Callable[[CodeType], Any] | None:
    """The function that makes Dynamo skip a code object; None if there is none."""
    frames: Any = getattr(torch._C._dynamo, "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return getattr(frames, "skip_code", None)


def inductor_ran() -> bool:
    """Whether TorchInductor has, or may have, compiled something. That it is imported is no sign: naming torch.compile
    does that."""
    if INDUCTOR not in sys.modules:
        return False
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    code = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    written = getattr(code, "modules", None)
    if counters is None or not isinstance(written, list):
        return True
    return bool(counters["stats"].get("unique_graphs") or written)


# The interpreter's frames.

_OPTIMIZED = 1  # flag of a function's code, whose variables lie in no dictionary
_COPIES = sys.version_info < (3, 13)  # a frame that is asked for its variables keeps a copy of them
# Names by which a function can get that copy. If a function uses none of them, its copy can be emptied.
_ASKING = {"locals", "vars", "dir", "eval", "exec", "f_locals"}


def is_function(code: CodeType) -> bool:
    """Whether code is that of a function, whose variables lie in no dictionary."""
    return bool(code.co_flags & _OPTIMIZED)


def variables(frame: FrameType) -> dict[str, Any]:
    """A function's local variables. The result is empty if a tracer, or the function itself, would notice the read, or
    if the interpreter does not behave as expected.

    Until Python 3.13 the frame keeps a copy of its variables after a read, with every tensor in it. A script that
    catches the error and goes on would then have less memory. So the copy is emptied, if nothing else refers to it.

    The variables name tensors that only a function's variable holds when a request fails. Without them the owner of
    such a tensor is unknown.
    """
    code = frame.f_code
    if not is_function(code):
        return {}
    if not _COPIES:
        return dict(frame.f_locals)
    if frame.f_trace is not None or sys.gettrace() is not None or not _ASKING.isdisjoint(code.co_names):
        return {}
    return _uncopied(frame) if reads_variables() else {}


def _uncopied(frame: FrameType) -> dict[str, Any]:
    code, copy = frame.f_code, frame.f_locals
    found = dict(copy)
    if sys.getrefcount(copy) > 3:  # another function has the copy and would notice the change
        return found
    for name in code.co_varnames + code.co_cellvars + code.co_freevars:
        copy.pop(name, None)
    return found


@functools.cache
def reads_variables() -> bool:
    """Whether a read of a frame's variables leaves no reference to them. The trial uses a frame of its own: an object
    must go when its function releases it, although the frame was read."""
    if not _COPIES:
        return True

    class Held:
        pass

    def function() -> Any:
        held = Held()
        ref = weakref.ref(held)
        found = _uncopied(sys._getframe())
        seen = found.pop("held", None) is held
        del held
        return seen and ref() is None

    return function()
