"""Traces, exports, copies or captures a model that was never called: traced.py KIND…. Prints the result of each KIND,
such as a digest of the graph, or the error."""

import copy
import hashlib
import io
import pickle
import sys
import warnings

import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, jvp, vmap

warnings.simplefilter("ignore")


MODES = ("real", "fake", "symbolic")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.0), nn.Linear(32, 16))
        self.norm = nn.LayerNorm(16)
        self.register_buffer("scale", torch.ones(16))

    def forward(self, x):
        return self.norm(x + self.inner(x)) * self.scale


def model():
    torch.manual_seed(0)
    return Block().to("cuda")


def x(n=4):
    return torch.randn(n, 16).to("cuda")


def text(graph):
    return hashlib.sha256(str(graph).encode()).hexdigest()[:12]


def jit_trace():
    traced = torch.jit.trace(model(), x())
    optimizer = torch.optim.SGD(traced.parameters(), 0.1)
    for _ in range(3):
        traced(x(8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return text(traced.inlined_graph)


def jit_trace_module():
    return text(torch.jit.trace_module(model(), {"forward": x()}).inlined_graph)


def jit_script():
    scripted = torch.jit.script(model())
    scripted(x()).sum().backward()
    return text(scripted.inlined_graph)


def symbolic_trace():
    traced = torch.fx.symbolic_trace(model())
    traced(x()).sum().backward()
    return text(traced.graph)


def symbolic_trace_whole():
    class Whole(torch.fx.Tracer):
        def is_leaf_module(self, *_args):
            return False

    return text(Whole().trace(model()))


def make_fx():
    from torch.fx.experimental.proxy_tensor import make_fx

    m = model()
    weights = dict(m.named_parameters())

    def train(w, one):
        out = functional_call(m, w, (one,))
        return torch.autograd.grad(out.sum(), [*w.values()])

    return [text(make_fx(train, tracing_mode=mode, _allow_non_fake_inputs=True)(weights, x()).graph) for mode in MODES]


def export():
    dim = torch.export.Dim("n", min=2, max=64)
    return [
        text(torch.export.export(model(), (x(),), dynamic_shapes=({0: dim},), strict=s).graph) for s in (True, False)
    ]


def dynamo():
    m = model()
    compiled = torch.compile(m, backend="eager", fullgraph=True)
    compiled(x()).sum().backward()
    return text(torch._dynamo.explain(model())(x()).graph_count)


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.device("cuda"):
        m = Block()
        optimizer = torch.optim.SGD(m.parameters(), 0.1)
        out = m(torch.randn(4, 16, device="cuda"))
        out.sum().backward()
        optimizer.step()
        return list(out.shape)


def meta():
    with torch.device("meta"):
        m = Block()
    out = m(torch.randn(4, 16, device="meta"))
    out.sum().backward()
    return list(m.to_empty(device="cuda")(x()).shape)


def capture():
    m, static = model(), x()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        m(static).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = m(static)
    graph.replay()
    return list(out.shape)


def callables():
    return list(torch.cuda.make_graphed_callables(model(), (x(),))(x()).shape)


def func():
    m = model()
    weights = {k: v.detach() for k, v in m.named_parameters()}

    def loss(w, one):
        return functional_call(m, w, (one[None],)).sum()

    one = vmap(grad(loss), in_dims=(None, 0))(weights, x())
    jacobian = jacrev(lambda one: m(one[None])[0])(x()[0])
    tangent = jvp(lambda one: m(one), (x(),), (x(),))[1]
    stacked, buffers = torch.func.stack_module_state([m, model()])
    many = vmap(lambda p, b, one: functional_call(m, (p, b), (one,)), in_dims=(0, 0, None))(stacked, buffers, x())
    hessian = torch.func.hessian(lambda one: m(one[None]).sum())(x()[0])
    twice = grad(lambda one: grad(lambda other: m(other[None]).sum())(one).sum())(x()[0])
    functional = torch.func.functionalize(lambda one: m(one))(x())
    linear = torch.func.linearize(lambda one: m(one), x())[0]
    found = (*one.values(), jacobian, tangent, many, hessian, twice, functional, linear)
    return [list(t.shape) for t in found]


def copies():
    m = model()
    before = len(pickle.dumps(m))
    for _ in range(2):
        m(x()).sum().backward()
    other = copy.deepcopy(m)
    other(x()).sum().backward()
    file = io.BytesIO()
    m.zero_grad()
    torch.save(m, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    loaded(x()).sum().backward()
    return [len(pickle.dumps(m)) - before, sorted(vars(loaded)) == sorted(vars(m)), sorted(vars(m.norm))]


def swapped():
    from torch.__future__ import set_swap_module_params_on_conversion as swap

    m = model()
    m(x()).sum().backward()
    swap(True)
    try:
        m.half().float()
    finally:
        swap(False)
    return str(next(m.parameters()).dtype)


def modes():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(getattr(function, "__name__", "?"))
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    for mode in (Functions, Dispatch):
        m = model()
        with mode():
            m(x()).sum().backward()
    return text(seen)


def checkpointed():
    from torch.utils.flop_counter import FlopCounterMode

    m = model()
    with FlopCounterMode(display=False) as counter:
        torch.utils.checkpoint.checkpoint(m, x().requires_grad_(), use_reentrant=False).sum().backward()
    return counter.get_total_flops()


def onnx_like():
    """Traces a model under no_grad, with a hook of the script's own."""
    m = model()
    m.register_forward_hook(lambda *_args: None)
    with torch.no_grad():
        return text(torch.jit.trace(m.eval(), x(), check_trace=True).inlined_graph)


for kind in sys.argv[1:]:
    try:
        print(kind, globals()[kind]())
    except Exception as error:
        print(kind, type(error).__name__, str(error).splitlines()[:1])
print("end")
