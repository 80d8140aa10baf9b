"""The one place that uses what torch, or the interpreter, does not promise to keep: private names, and how private
objects are built. The rest of the agent has it from here.

bind() looks each function up once, so that a hook pays for no more than it did with torch's own name. A feature that
this torch does not have is None, or finds nothing; FEATURES says of each what is lost without it, and how to tell
whether it works.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
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
OPS = "torch._ops"  # calls an operator that its caller names

# Attributes that hooks take the place of.
CALL = "_call_impl"  # of Module: every call goes through it
ENGINE = "_execution_engine"  # of Variable: every backward goes through it
RECOMPUTATION = "_recomputation_hook"  # of torch.utils.checkpoint: the context of a recompute
RECORD_HISTORY = "_record_memory_history"  # of torch.cuda.memory
SNAPSHOT = "_snapshot"  # of torch.cuda.memory

# Attributes that every module has, in its dictionary.
CHILDREN = "_modules"
PARAMETERS = "_parameters"
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# What wrappers of torch put into a module's path.
WRAPPERS = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
# What an optimizer's attributes for its own hooks begin with.
OPTIMIZER_HOOKS = "_optimizer_"

# What a function names that asks for a convolution, torch's own layers and generated code included.
CONVOLUTIONS = frozenset(
    (
        "convolution",
        "_convolution",
        "convolution_backward",
        "cudnn_convolution",
        "cudnn_convolution_transpose",
        *(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)),
    )
)


class Private:
    """torch's functions that have no public name, looked up once. Those of CUDA are None in a build without it."""

    __slots__ = (
        "DisableTorchFunction",
        "attach_oom_observer",
        "current_device",
        "current_node",
        "disable_dynamo",
        "fake_mode",
        "functorch_level",
        "functorch_unwrapped",
        "functorch_wraps",
        "graph_task",
        "is_capturing",
        "lazy_call",
        "memory_snapshot",
        "memory_stats",
        "raw_stream",
        "record_event",
        "record_history",
        "sequence_number",
        "set_metadata",
        "torch_function_modes",
    )

    # Memory.
    lazy_call: Function  # runs a function once CUDA is initialised
    record_history: Function  # torch.cuda.memory._record_memory_history, without our wrapper
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
    sequence_number: Callable[[], int]  # of the node that this thread makes next
    current_node: Callable[[], Any] | None  # the node that the engine runs in this thread
    # What may lie between a tensor and its storage.
    DisableTorchFunction: Function  # a context
    torch_function_modes: Callable[[], int]  # how many are on
    functorch_level: Callable[[], Any]  # None outside of torch.func
    functorch_wraps: Callable[[Any], bool]
    functorch_unwrapped: Callable[[Any], Any]
    fake_mode: Callable[[], Any]  # None unless something traces with fake tensors
    disable_dynamo: Function

    def bind(self, torch: Any) -> None:
        """Looks everything up. Raises AttributeError if this torch lacks what nothing can be recorded without."""
        C = torch._C
        cuda: Callable[[str], Any] = functools.partial(getattr, C)
        if torch.version.cuda is None:
            cuda = functools.partial(_optional, C)
        self.lazy_call = torch.cuda._lazy_call
        self.record_history = torch.cuda.memory._record_memory_history
        self.memory_snapshot = cuda("_cuda_memorySnapshot")
        self.memory_stats = cuda("_cuda_memoryStats")
        self.set_metadata = cuda("_cuda_setMemoryMetadata")
        self.attach_oom_observer = cuda("_cuda_attach_out_of_memory_observer")
        self.current_device = cuda("_cuda_getDevice")
        self.raw_stream = cuda("_cuda_getCurrentRawStream")
        self.record_event = _optional(cuda("_CudaEventBase"), "record")
        self.is_capturing = cuda("_cuda_isCurrentStreamCapturing")
        self.graph_task = C._current_graph_task_id
        self.sequence_number = torch.autograd._get_sequence_nr
        self.current_node = _optional(C, "_current_autograd_node")
        self.DisableTorchFunction = C.DisableTorchFunction
        self.torch_function_modes = C._len_torch_function_stack
        self.functorch_level = C._functorch.peek_interpreter_stack
        self.functorch_wraps = C._functorch.is_functorch_wrapped_tensor
        self.functorch_unwrapped = C._functorch.get_unwrapped
        self.fake_mode = functools.partial(C._get_dispatch_mode, C._TorchDispatchModeKey.FAKE)
        self.disable_dynamo = torch._disable_dynamo


def _optional(owner: Any, name: str) -> Any:
    return getattr(owner, name, None)


private = Private()


def records_metadata(torch: Any) -> bool:
    """Whether allocator events can carry the number of a mark: what ties the two together."""
    return hasattr(torch._C, "_cuda_setMemoryMetadata")


# Modules.


def forward_hooks(module: Any) -> Iterable[Any]:
    """The hooks that run after a module's forward."""
    return module._forward_hooks.values()


def own_parameters(module: Any) -> Iterable[tuple[str, Any]]:
    """Names and parameters of a module, None among them, without those of its children."""
    return module._parameters.items()


def compile_with(module: Any, impl: Any, compile_module: Callable[[], None]) -> Function:
    """Compiles a module as if impl ran its calls: Module.compile takes the attribute. Returns what it has compiled."""
    vars(module)[CALL] = impl
    try:
        compile_module()
    finally:
        del vars(module)[CALL]
    return module._compiled_call_impl


def set_compiled(module: Any, function: Function) -> None:
    """Has the calls of a compiled module run this."""
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
    """The attributes in which nodes of this type hold saved tensors. Only these are read: to read those without "raw"
    would unpack, which runs hooks of the script's."""
    return [a for a in dir(kind) if a.startswith("_raw_saved_")]


def node_number(node: Any) -> int:
    """A node's sequence number; -1 = it has none."""
    found = getattr(node, "_sequence_nr", None)
    return -1 if found is None else found()


def input_devices(node: Any) -> list[Any]:
    """The devices of the gradients that flow into a node. Raises RuntimeError or AttributeError where it has lost its
    graph."""
    return [m.device for m in node._input_metadata]


def checkpoint_inputs(unpack_hook: Any) -> Iterator[Any]:
    """The node that keeps the inputs of a checkpointed block, of a tensor that the block has saved: its unpack hook
    refers to the frame that has it."""
    for cell in getattr(unpack_hook, "__closure__", None) or ():
        try:
            saver = getattr(cell.cell_contents, "input_saver", None)
        except ValueError:
            continue
        if saver is not None and saver.grad_fn is not None:
            yield saver.grad_fn


def recomputed(frame: Any, group: Any) -> list[Any]:
    """What a checkpointed block has computed anew for one run of the engine."""
    return list(getattr(frame, "recomputed", {}).get(group, {}).values())


def gradient_hooks(p: Any) -> dict[int, Any] | None:
    """The hooks that run when a parameter's gradient is complete; None if it never had one."""
    return p._post_accumulate_grad_hooks


# void set_post_acc_grad_hooks(const TensorBase&, std::unique_ptr<PostAccumulateGradHook>), which libtorch_cpu exports.
_SET_HOOKS = (
    "_ZN5torch8autograd4impl23set_post_acc_grad_hooksERKN2at10TensorBaseE"
    "St10unique_ptrINS0_22PostAccumulateGradHookESt14default_deleteIS7_EE"
)


@functools.cache
def _set_hooks() -> Callable[..., None] | None:
    """torch's function, which has the engine forget a dictionary of hooks: to set Python's attribute to None does not,
    and torch has no other way from Python. It takes two pointers: to a tensor, which is a pointer to what _cdata says,
    and to a unique_ptr, which is one to the hooks. None where it has another name; bare steps then cost a little more.
    """
    library = os.path.join(os.path.dirname(sys.modules["torch"].__file__ or ""), "lib", "libtorch_cpu.so")
    try:
        # What torch has loaded and nothing else; by PyDLL the lock stays ours, and torch takes it once more.
        found = getattr(ctypes.PyDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW), _SET_HOOKS)
    except (OSError, AttributeError) as error:
        if by_script(error):
            raise
        return None
    found.argtypes, found.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    return found


def forgets_gradient_hooks() -> bool:
    """Whether the engine can be made to forget an empty dictionary of a parameter's hooks."""
    return _set_hooks() is not None


def forget_gradient_hooks(p: Any) -> None:
    """Has the engine forget the dictionary of a parameter's hooks."""
    set_hooks = _set_hooks()
    if set_hooks is not None:
        p._post_accumulate_grad_hooks = None
        set_hooks(ctypes.byref(ctypes.c_void_p(p._cdata)), ctypes.byref(ctypes.c_void_p(None)))


# Tensors and storages.


def local_tensor(tensor: Any) -> Any:
    """What this rank has of a DTensor; None of any other tensor."""
    return getattr(tensor, "_local_tensor", None)


def sparse_parts(tensor: Any) -> tuple[Any, Any]:
    """Indices and values of a tensor in COO layout; the public names refuse one that is not coalesced."""
    return tensor._indices(), tensor._values()


class Weak:
    """A weak reference to a storage, which lets the memory go: to see later who still holds it. torch has such a
    reference freed by hand. It is an object so that Python counts who uses it: threads share them, and a lock around
    that would stay held where a script's signal handler raises. It keeps torch's functions itself: when the interpreter
    ends, modules lose their names before the last objects go."""

    __slots__ = ("_expired", "_free", "_reference")

    def __init__(self, storage: Any) -> None:
        self._expired, self._free = storage._expired, storage._free_weak_ref
        self._reference = storage._weak_ref()

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._expired(self._reference)

    def __del__(self) -> None:
        if hasattr(self, "_reference"):
            self._free(self._reference)


def weak(storage: Any) -> Weak | None:
    """A weak reference to a storage; None if torch makes none of it."""
    return Weak(storage) if hasattr(storage, "_weak_ref") else None


def expired(ref: Weak | None) -> bool:
    """Whether the storage behind a weak reference is gone."""
    return ref is None or ref.expired()


# Ranks.


def bucket_makers(module: Any) -> Iterator[tuple[Any, str]]:
    """Of torch.nn.parallel.distributed: the classes and methods that make the flat buckets of DDP's reducer."""
    if callable(vars(module.DistributedDataParallel).get("_ddp_init_helper")):
        yield module.DistributedDataParallel, "_ddp_init_helper"
    reducer = getattr(module.dist, "Reducer", None)  # a build without torch.distributed has none
    if getattr(reducer, "_rebuild_buckets", None) is not None:
        yield reducer, "_rebuild_buckets"


GATHER = "_to_unsharded"  # of FSDPParamGroup: its parameters have just been gathered
SCATTER = "post_backward"  # and its gradients are scattered


def gathered(group: Any) -> Iterator[tuple[Any, Any, str]]:
    """The whole parameters that an FSDP2 group has gathered, their shards and their names."""
    for shared in group.fsdp_params:
        yield shared._unsharded_param, shared.sharded_param, shared._param_fqn or "sharded"


def gathered_flat(group: Any) -> Any:
    """The flat tensor that a group's parameters came in; None = there is none."""
    return getattr(group._all_gather_result, "all_gather_output", None)


def scattered_flat(group: Any) -> Any:
    """The flat tensor that a group's gradients were put into; None = there is none."""
    # The latest, which this group has sent; newer releases of torch keep a list.
    states = getattr(group.comm_ctx, "reduce_scatter_states", None) or [
        getattr(group.comm_ctx, "reduce_scatter_state", None)
    ]
    return getattr(states[-1], "reduce_scatter_input", None)


def shards(group: Any) -> list[Any]:
    """The shards of a group's parameters that this rank has."""
    return [shared.sharded_param for shared in group.fsdp_params]


def group_path(group: Any) -> str:
    """The path of the module that a group belongs to."""
    return group._module_fqn


# Dynamo.


def dynamo_skips(torch: Any) -> Callable[[CodeType], Any] | None:
    """The function that has Dynamo skip a code object; None if there is none."""
    frames: Any = getattr(torch._C._dynamo, "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return getattr(frames, "skip_code", None)


# The interpreter's frames.

_OPTIMIZED = 1  # flag of code whose variables lie in no dictionary: a function's
_COPIES = sys.version_info < (3, 13)  # a frame that is asked for its variables keeps a copy of them
# What gives a function that copy. One that names none of these has it in no variable of its own, so it can be emptied.
_ASKING = {"locals", "vars", "dir", "eval", "exec", "f_locals"}


def is_function(code: CodeType) -> bool:
    """Whether code is a function's, whose variables lie in no dictionary."""
    return bool(code.co_flags & _OPTIMIZED)


def variables(frame: FrameType) -> dict[str, Any]:
    """A function's local variables; none where the question would be noticed, by who follows the function or has asked
    for them itself."""
    code = frame.f_code
    if not is_function(code):
        return {}
    if not _COPIES:
        return dict(frame.f_locals)
    if frame.f_trace is not None or sys.gettrace() is not None or not _ASKING.isdisjoint(code.co_names):
        return {}
    copy = frame.f_locals
    found = dict(copy)
    if sys.getrefcount(copy) > 3:  # another function has asked for it: all that it notices is what has changed since
        return found
    for name in code.co_varnames + code.co_cellvars + code.co_freevars:
        copy.pop(name, None)
    return found
