"""Calls functions that the phantom GPU estimates or refuses by name. A graph's capture must refuse what a device
refuses."""

import json
import sys

import torch

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

phantom_values.install(torch)
results = {}


def attempt(name, function):
    try:
        function()
        results[name] = "done"
    except RuntimeError as error:
        results[name] = str(error).split("\n")[0]


def read_in_capture():
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.zeros(8, device="cuda").sum().item()


def graph():
    x = torch.zeros(1024, device="cuda")
    captured = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.graph(captured):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 2
            joined = torch.cuda.is_current_stream_capturing()
        torch.cuda.current_stream().wait_stream(side)
        y.add_(1)
    captured.replay()
    if not joined or torch.cuda.is_current_stream_capturing():
        raise RuntimeError("a stream that waits for a capture does not take part in it")


def small(function):
    """Checks that a function takes no unknown size from stale memory, which has 123456789 here."""
    stale = [torch.full((4096,), 123456789).cuda() for _ in range(16)]
    del stale
    torch.cuda.reset_peak_memory_stats()
    function()
    if torch.cuda.max_memory_allocated() > 64 << 20:
        raise RuntimeError(f"it took {torch.cuda.max_memory_allocated()} bytes")


def sparse():
    at = torch.randint(0, 64, (2, 100))
    return torch.sparse_coo_tensor(at, torch.randn(100), (64, 64)).cuda()


x = torch.randn(64, 64, device="cuda")
few = torch.randint(0, 5, (100,), device="cuda")
attempt("qr", lambda: torch.linalg.qr(x))
attempt("svd", lambda: torch.linalg.svd(x))
attempt("lstsq", lambda: torch.linalg.lstsq(x, x))
attempt("solve", lambda: torch.linalg.solve(x, x))
attempt("gru", lambda: torch.nn.GRU(8, 8).cuda()(torch.zeros(2, 2, 8).cuda()))
attempt("sparse_mm", lambda: torch.sparse.mm(sparse(), x))
attempt("coalesce", lambda: small(lambda: sparse().coalesce()))
attempt(
    "coalesce_unknown", lambda: small(lambda: torch.sparse_coo_tensor(few.view(2, 50), x[0, :50], (5, 5)).coalesce())
)
attempt("isin", lambda: small(lambda: torch.isin(few, few[:50])))
attempt("cholesky", lambda: torch.linalg.cholesky(torch.eye(8).cuda()))
attempt("lstm", lambda: torch.nn.LSTM(8, 8).cuda()(torch.zeros(2, 2, 8).cuda()))
attempt("fft", lambda: torch.fft.fft(torch.zeros(64).cuda()))
attempt("conv", lambda: torch.nn.Conv2d(3, 8, 3).cuda()(torch.zeros(2, 3, 16, 16).cuda()).sum().backward())
attempt("green_context", lambda: torch.cuda.green_contexts.GreenContext.create(num_sms=8, device_id=0))
attempt("read_in_capture", read_in_capture)
attempt("graph", graph)
json.dump(results, sys.stdout)
