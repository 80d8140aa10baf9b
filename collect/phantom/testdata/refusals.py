"""What cannot be answered fails by name; a graph capture refuses what a device refuses."""

import json
import sys

import torch

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


attempt("cholesky", lambda: torch.linalg.cholesky(torch.eye(8).cuda()))
attempt("lstm", lambda: torch.nn.LSTM(8, 8).cuda()(torch.zeros(2, 2, 8).cuda()))
attempt("fft", lambda: torch.fft.fft(torch.zeros(64).cuda()))
attempt("conv", lambda: torch.nn.Conv2d(3, 8, 3).cuda()(torch.zeros(2, 3, 16, 16).cuda()).sum().backward())
attempt("read_in_capture", read_in_capture)
attempt("graph", graph)
json.dump(results, sys.stdout)
