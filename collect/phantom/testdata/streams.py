"""Checks which work on streams is still pending, and the order of work in CUDA graphs."""

import json
import sys
import warnings

import torch

MILLISECOND = 2_000_000  # in cycles of torch.cuda._sleep, about


def pending():
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(stream):
        before = torch.cuda.Event()
        before.record()
        torch.cuda._sleep(10 * MILLISECOND)
        event.record()
    found = {
        "before": before.query(),
        "slept": event.query(),
        "stream": stream.query(),
        "other": torch.cuda.Stream().query(),
    }
    follower = torch.cuda.Stream()
    follower.wait_event(event)
    found["follower"] = follower.query()
    event.synchronize()
    return found | {"waited": event.query() and stream.query() and follower.query()}


def polled():
    torch.cuda._sleep(10 * MILLISECOND)
    asked = 0
    while not torch.cuda.current_stream().query():
        asked += 1
    return asked


def reused(sleeps, wait):
    """Returns whether the allocator hands out a block again after another stream used it."""
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    block = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
    address = block.data_ptr()
    with torch.cuda.stream(side):
        if sleeps:
            torch.cuda._sleep(100 * MILLISECOND)
    block.record_stream(side)
    del block
    if wait:
        torch.cuda.synchronize()
    return torch.empty(3 << 20, dtype=torch.uint8, device="cuda").data_ptr() == address


def pinned(wait):
    host = torch.zeros(1 << 20, dtype=torch.uint8).pin_memory()
    address = host.data_ptr()
    torch.cuda._sleep(100 * MILLISECOND)
    device = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    device.copy_(host, non_blocking=True)
    del host
    if wait:
        torch.cuda.synchronize()
    return torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True).data_ptr() == address


def warned(work):
    """Returns torch's warnings about an empty graph when it captures this work."""
    inputs = torch.ones(64, 64, device="cuda")
    out = inputs @ inputs
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            graph.capture_begin()
            work(inputs, out)
            graph.capture_end()
    return [str(w.message) for w in caught if "empty" in str(w.message)]


def freed_in_capture(joined):
    """Returns whether, within a capture, a block that another stream used is handed out again."""
    torch.cuda.memory._set_allocator_settings("graph_capture_record_stream_reuse:True")
    one, two, graph = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        graph.capture_begin()
        sink, block = torch.empty(8, device="cuda"), torch.empty(8, device="cuda")
        address = block.data_ptr()
        two.wait_stream(one)
        with torch.cuda.stream(two):
            torch.add(block, 2.0, out=torch.empty_like(block))
            block.record_stream(two)
        del block
        if joined:
            one.wait_stream(two)
            sink.fill_(1.0)
        same = torch.empty(8, device="cuda").data_ptr() == address
        if not joined:
            one.wait_stream(two)
        graph.capture_end()
    torch.cuda.memory._set_allocator_settings("graph_capture_record_stream_reuse:False")
    return same


def after_capture():
    """Returns whether a stream that waits for an event of an ended capture counts as capturing."""
    stream, graph, event = torch.cuda.Stream(), torch.cuda.CUDAGraph(), torch.cuda.Event()
    block = torch.ones(8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        block.add_(1)
        event.record()
        graph.capture_end()
    other = torch.cuda.Stream()
    other.wait_event(event)
    with torch.cuda.stream(other):
        return torch.cuda.is_current_stream_capturing()


json.dump(
    {
        "pending": pending(),
        "polled": polled(),
        "reused": [reused(False, False), reused(True, False), reused(True, True)],
        "pinned": [pinned(False), pinned(True)],
        "warned": [
            len(warned(lambda inputs, out: None)),
            len(warned(lambda inputs, out: inputs.add_(1))),
            len(warned(lambda inputs, out: torch.mm(inputs, inputs, out=out))),
        ],
        "freed_in_capture": [freed_in_capture(False), freed_in_capture(True)],
        "after_capture": after_capture(),
    },
    sys.stdout,
)
