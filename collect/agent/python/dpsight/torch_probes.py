"""Tests whether each private feature of torch that the agent uses works in an interpreter. "dpsight doctor" prints the
results.

A probe tries a feature on the CPU if possible. For a feature that needs a GPU it only checks whether torch has it,
since a probe never initialises CUDA. The agent itself does not load this module.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsight import torch_compat
from dpsight.torch_compat import private

Probe = Callable[[Any], bool]


@dataclass(frozen=True)
class Feature:
    """A private feature of torch, which a later torch may lack."""

    name: str
    gives: str
    without: str  # what is lost if the probe fails
    needed: bool  # whether nothing can be recorded without the feature
    probe: Probe


FEATURES: list[Feature] = []


def _feature(name: str, gives: str, without: str = "") -> Callable[[Probe], Probe]:
    """Adds the feature that a probe tests. without is empty if nothing can be recorded without the feature."""

    def add(probe: Probe) -> Probe:
        FEATURES.append(Feature(name, gives, without or "no recording", not without, probe))
        return probe

    return add


# Memory.


@_feature("allocator history", "every allocation, in order")
def _history(_torch: Any) -> bool:
    parameters = inspect.signature(inspect.unwrap(private.record_history)).parameters
    implementation = inspect.getsource(inspect.getmodule(private.record_history))  # type: ignore[arg-type]
    return "enabled" in parameters and "clear_history" in implementation and callable(private.memory_snapshot)


@_feature("allocator marks", "phase and module of an allocation")
def _marks(torch: Any) -> bool:
    return torch_compat.records_metadata(torch) and callable(private.set_metadata)


@_feature("allocator counters", "proof that no event was lost")
def _counters(_torch: Any) -> bool:
    return callable(private.memory_stats) and callable(private.current_device)


@_feature("memory observer", "breakdown of a failed request")
def _observer(_torch: Any) -> bool:
    return callable(private.attach_oom_observer)


@_feature("start with CUDA", "recording from the first byte")
def _start(torch: Any) -> bool:
    called: list[bool] = []
    if not torch.cuda.is_initialized():  # otherwise the callback would run at once
        private.lazy_call(lambda: called.append(True))
    return not called


@_feature("script's history", "recording beside a script's own recording", "a script's own recording ends dpsight's")
def _scripts_history(torch: Any) -> bool:
    wrapped = torch_compat.RECORD_HISTORY, torch_compat.SNAPSHOT
    return all(callable(getattr(torch.cuda.memory, name, None)) for name in wrapped)


@_feature("streams", "GPU time of phases and modules")
def _streams(_torch: Any) -> bool:
    return all(map(callable, (private.raw_stream, private.record_event, private.is_capturing)))


# Modules and optimizers.


@_feature("module calls", "phases and modules of forward")
def _calls(torch: Any) -> bool:
    called = []
    kind = type("Module", (torch.nn.Module,), {"forward": lambda _self, x: x})
    inner = getattr(kind, torch_compat.CALL)
    setattr(kind, torch_compat.CALL, lambda module, *args: [called.append(module), inner(module, *args)][1])
    module = kind()
    return module(1) == 1 and called == [module]


@_feature("compiled modules", "marks around compiled modules", "no marks of modules after module.compile()")
def _compiled(torch: Any) -> bool:
    seen = []

    class Module(torch.nn.Module):
        def compile(self) -> None:
            seen.append(getattr(self, torch_compat.CALL))
            torch_compat.set_compiled(self, getattr(self, torch_compat.CALL))

        def forward(self, x: Any) -> Any:
            return x

    module = Module()
    compiled = torch_compat.compile_with(module, lambda x: x + 1, module.compile)
    torch_compat.set_compiled(module, lambda x: compiled(x) + 1)
    return seen == [compiled] and module(1) == 3


@_feature("module dictionaries", "hooks and parameters of modules", "fewer blocks with a tag")
def _dictionaries(torch: Any) -> bool:
    module = torch.nn.Linear(1, 1)
    module.register_forward_hook(print)
    own = vars(module)
    found = list(torch_compat.forward_hooks(module)) == [print]
    named = [name for name, _ in torch_compat.own_parameters(module)] == ["weight", "bias"]
    return found and named and {torch_compat.CHILDREN, torch_compat.PARAMETERS, *torch_compat.HOOKS} <= own.keys()


@_feature("optimizer steps", "ends of updates that raised", "an update that raises has no end")
def _steps(torch: Any) -> bool:
    codes = []

    class Optimizer(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            frame: Any = sys._getframe()
            while frame is not None:
                codes.append(frame.f_code)
                frame = frame.f_back

    optimizer = Optimizer([torch.zeros(1, requires_grad=True)], lr=1.0)
    optimizer.step()
    own = [name for name in vars(optimizer) if name.startswith(torch_compat.OPTIMIZER_HOOKS)]
    return torch_compat.step_code(torch.optim.Optimizer) in codes and own != []


# Autograd.


@_feature("backward runs", "phases of backward")
def _engine(torch: Any) -> bool:
    variable = torch.autograd.variable.Variable
    engine = getattr(variable, torch_compat.ENGINE)
    runs = []

    class Engine(type(engine)):  # type: ignore[misc]
        def run_backward(self, *args: Any, **kwargs: Any) -> Any:
            runs.append(True)
            return super().run_backward(*args, **kwargs)

    setattr(variable, torch_compat.ENGINE, Engine())
    try:
        torch.ones(1, requires_grad=True).sum().backward()
    finally:
        setattr(variable, torch_compat.ENGINE, engine)
    return len(runs) == 1


@_feature("inside a backward", "nested backward runs")
def _task(torch: Any) -> bool:
    inside = []
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda _gradient: inside.append(private.graph_task()))
    x.sum().backward()
    return private.graph_task() == -1 and inside != [] and inside[0] != -1


@_feature("order of nodes", "module of a saved tensor")
def _order(torch: Any) -> bool:
    x = torch.ones(1, requires_grad=True)
    first = private.sequence_number()
    return torch_compat.node_number((x * 2).grad_fn) == first and private.sequence_number() == first + 1


@_feature("node under way", "module of a request in backward", "no module for a request that fails in backward")
def _node(torch: Any) -> bool:
    if private.current_node is None:
        return False
    found = []
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda _gradients: found.append(private.current_node()))  # type: ignore[misc]
    y.sum().backward()
    return found == [y.grad_fn]


@_feature("saved tensors", "memory that backward needs", "activations have no tag, only a phase")
def _saved(torch: Any) -> bool:
    x = torch.ones(1, requires_grad=True)
    node = (x * x).grad_fn
    held = [getattr(node, name).data for name in torch_compat.saved_attributes(type(node))]
    return [tensor.data_ptr() for tensor in held] == [x.data_ptr()] * 2


@_feature("devices of nodes", "saved tensors while a backward runs", "no saved tensors if a request fails in backward")
def _devices(torch: Any) -> bool:
    node = (torch.ones(1, requires_grad=True) * 2).grad_fn
    return torch_compat.input_devices(node) == [torch.device("cpu")]


@_feature("gradient hooks", "gradients as they are made")
def _gradient_hooks(torch: Any) -> bool:
    p = torch.ones(1, requires_grad=True)
    before = torch_compat.gradient_hooks(p)
    handle = p.register_post_accumulate_grad_hook(print)
    return before is None and torch_compat.gradient_hooks(p) == {handle.id: print}


@_feature("forgotten hooks", "bare steps as fast as without dpsight", "bare steps are up to 2 us a parameter slower")
def _forgotten(torch: Any) -> bool:
    if not torch_compat.forgets_gradient_hooks():
        return False
    p = torch.ones(1, requires_grad=True)
    called: list[Any] = []
    p.register_post_accumulate_grad_hook(called.append).remove()
    torch_compat.forget_gradient_hooks(p)
    p.sum().backward()
    p.register_post_accumulate_grad_hook(called.append)
    p.sum().backward()
    return len(called) == 1 and called[0] is p and p.grad.item() == 2


@_feature("checkpoint frames", "saved tensors before a checkpoint", "fewer saved tensors in checkpointed models")
def _checkpoints(torch: Any) -> bool:
    x = torch.ones(1, requires_grad=True) * 2
    y = torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)
    variables = [getattr(y.grad_fn, name) for name in torch_compat.saved_attributes(type(y.grad_fn))]
    found = [kept for v in variables for kept in torch_compat.checkpoint_inputs(v.unpack_hook)]
    inputs = [kept for kept in found if torch_compat.is_saved(kept)]
    for node in (kept for kept in found if not torch_compat.is_saved(kept)):
        inputs += [v for name in torch_compat.saved_attributes(type(node)) for v in getattr(node, name)]
    return x.data_ptr() in [v.data.data_ptr() for v in inputs if v.data is not None]


@_feature("recomputes", "scope of a recompute", "recomputes count as backward")
def _recomputes(torch: Any) -> bool:
    module = torch.utils.checkpoint
    base = getattr(module, torch_compat.RECOMPUTATION, None)
    if not isinstance(base, type):
        return False
    found: list[Any] = []

    class Recomputation(base):  # type: ignore[misc, valid-type]
        def __init__(self, frame: Any, group: Any, *args: Any, **kwargs: Any) -> None:
            self.of = frame, group
            super().__init__(frame, group, *args, **kwargs)

        def __exit__(self, *args: Any) -> Any:
            frame, group = self.of
            found.extend(torch_compat.recomputed(frame(), group))
            return super().__exit__(*args)

    setattr(module, torch_compat.RECOMPUTATION, Recomputation)
    try:
        module.checkpoint(torch.sin, torch.ones(1, requires_grad=True), use_reentrant=False).sum().backward()
    finally:
        setattr(module, torch_compat.RECOMPUTATION, base)
    return bool(found)


# Tensors and storages.


@_feature("quiet looks", "no calls of a script's tensor subclasses")
def _quiet(torch: Any) -> bool:
    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_args: Any, **_kwargs: Any) -> Any:
            raise TypeError

    with private.DisableTorchFunction():
        return not torch.ones(1).as_subclass(Tensor).is_cuda


@_feature("function modes", "no calls of a script's modes")
def _modes(torch: Any) -> bool:
    with torch.overrides.TorchFunctionMode():
        inside = private.torch_function_modes()
    return (private.torch_function_modes(), inside) == (0, 1)


@_feature("torch.func", "tensors inside torch.func")
def _functorch(torch: Any) -> bool:
    x = torch.ones(2)
    found = []

    def look(row: Any) -> Any:
        inner = private.functorch_unwrapped(row)
        wraps = private.functorch_wraps(row) and private.functorch_batched(row)
        found.append((private.functorch_level() is not None, wraps, inner.data_ptr()))
        return row

    torch.func.vmap(look)(x)
    return (
        private.functorch_level() is None and not private.functorch_wraps(x) and found == [(True, True, x.data_ptr())]
    )


@_feature("fake tensors", "no marks of forwards that only trace")
def _fake(torch: Any) -> bool:
    found = []

    def traced(x: Any) -> Any:
        found.append(private.fake_mode() is not None)
        return x

    importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx(traced, tracing_mode="fake")(torch.ones(1))
    return private.fake_mode() is None and found == [True]


@_feature("traces", "traced graphs without the agent")
def _traces(torch: Any) -> bool:
    found = []

    def traced(x: Any) -> Any:
        found.append(private.traces())
        return x + 1

    importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx(traced)(torch.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases of torch warn that it is deprecated
        torch.jit.trace(traced, torch.ones(1), check_trace=False)
    return not private.traces() and found == [True, True]


@_feature("weak references", "ends of owners", "owners of saved tensors and activations have no end")
def _weak(torch: Any) -> bool:
    tensor = torch.ones(1)
    ref = torch_compat.weak(tensor.untyped_storage())
    before = torch_compat.expired(ref)
    del tensor
    gc.collect()
    return ref is not None and not before and torch_compat.expired(ref)


@_feature("sparse tensors", "memory of sparse gradients", "sparse gradients have no tag")
def _sparse(torch: Any) -> bool:
    indices, values = torch_compat.sparse_parts(torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (1,)))
    return indices.shape == (1, 2) and values.tolist() == [1.0, 2.0]


# Ranks. A feature that needs a process group is only searched for, in the code of torch that would use it.


@_feature("DTensor", "shards of distributed tensors", "distributed tensors have no tag")
def _dtensor(_torch: Any) -> bool:
    kind = importlib.import_module("torch.distributed.tensor").DTensor
    return torch_compat.SHARD in _names(kind) | set(getattr(kind, "__slots__", ()))


@_feature("DDP buckets", "gradient buckets of DDP", "DDP's buckets have no tag")
def _buckets(_torch: Any) -> bool:
    return len(list(torch_compat.bucket_makers(importlib.import_module("torch.nn.parallel.distributed")))) == 2


@_feature("FSDP2 groups", "gathered and scattered parameters", "FSDP2's flat tensors have no tag")
def _groups(_torch: Any) -> bool:
    public = importlib.import_module("torch.distributed.fsdp").fully_shard
    module = importlib.import_module(torch_compat.FSDP2_GROUPS)
    group = module.FSDPParamGroup
    hooked = [vars(group).get(torch_compat.GATHER), vars(group).get(torch_compat.SCATTER)]
    looks = torch_compat.gathered, torch_compat.gathered_flat, torch_compat.shards, torch_compat.group_path
    known = _names(group, module.FSDPParam, module)
    made = vars(importlib.import_module(torch_compat.FSDP2)).get("fully_shard")
    return public is made and all(map(callable, hooked)) and _names(*looks) <= known


@_feature("optimizer state for loading", "steps of a resumed run", "a loaded optimizer's first state counts as a step")
def _state_for_loading(torch: Any) -> bool:
    initialize = getattr(importlib.import_module(torch_compat.STATE_DICT), torch_compat.INIT_STATE, None)
    if initialize is None:
        return False
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam([parameter])
    initialize(optimizer)
    return len(optimizer.state) == 1 and parameter.item() == 1


@_feature("state of named optimizers", "steps of such an optimizer", "creating its state counts as a step")
def _named_optimizers(torch: Any) -> bool:
    named = vars(importlib.import_module(torch_compat.NAMED_OPTIMIZER)).values()
    parameter = torch.nn.Parameter(torch.ones(1))
    for cls in [c for c in named if isinstance(c, type) and callable(vars(c).get("init_state"))]:
        optimizer = cls([("weight", parameter)], torch.optim.Adam, lr=0.1)
        optimizer.init_state()
        return len(optimizer.state) == 1 and parameter.item() == 1
    return False


@_feature("names of wrappers", "the same name for a wrapped layer", "wrapped layers have other names")
def _wrappers(_torch: Any) -> bool:
    named = {getattr(importlib.import_module(module), name) for module, name in torch_compat.WRAPPERS_NAMED_BY}
    return named <= torch_compat.WRAPPERS


# Compilers, and other parts of torch.


@_feature("unseen by Dynamo", "compiled code without the agent", "Dynamo compiles the agent after a graph break")
def _unseen(torch: Any) -> bool:
    skip = torch_compat.dynamo_skips(torch)
    if skip is None:
        return False
    skip((lambda: None).__code__)
    return True


@_feature("kept from Dynamo", "zero_grad() that compiles as without dpsight")
def _kept(_torch: Any) -> bool:
    return callable(private.disable_dynamo)


@_feature("torch's own modules", "compiled code and convolutions", "a convolution's retry counts as a failed request")
def _modules(torch: Any) -> bool:
    own = importlib.util.find_spec(torch_compat.INDUCTOR) is not None and torch_compat.OPS in sys.modules
    asked = [name for name in torch_compat.CONVOLUTIONS if hasattr(torch, name)]
    return own and len(asked) == len(torch_compat.CONVOLUTIONS) - 1  # convolution_backward exists only as an operator


@_feature("expanded weights", "per-sample gradients of Opacus' ew", "these count as activation gradients")
def _expanded(_torch: Any) -> bool:
    module = importlib.import_module(torch_compat.EXPANDED_WEIGHTS)
    return callable(module.set_grad_sample_if_exists) and isinstance(module.ExpandedWeight, type)


@_feature("local variables", "local variables at a failed request", "tensors in local variables have no names")
def _variables(_torch: Any) -> bool:
    return torch_compat.reads_variables()


def _names(*owners: Any) -> set[str]:
    """The names that the code of the given functions uses, and the code of the functions in the given classes and
    modules."""
    out: set[str] = set()
    for owner in owners:
        own = vars(owner).values() if isinstance(owner, type) or inspect.ismodule(owner) else [owner]
        for function in own:
            code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
            if code is not None:
                out.update(code.co_names)
    return out


def results(torch: Any) -> list[dict[str, Any]]:
    """The result of each probe. For a probe that raised, it is the error."""
    private.look_up(torch)
    out = []
    for feature in FEATURES:
        error = ""
        try:
            works = feature.probe(torch)
        except Exception as raised:
            works, error = False, f"{type(raised).__name__}: {raised}"
        out.append(
            {
                "name": feature.name,
                "ok": bool(works),
                "needed": feature.needed,
                "gives": feature.gives,
                "without": feature.without,
                "error": error,
            }
        )
    return out


def main() -> None:
    """Prints the results as JSON."""
    json.dump(results(importlib.import_module("torch")), sys.stdout)


if __name__ == "__main__":
    main()
