#!/usr/bin/env python3
"""Writes the fixtures of torch's eras into its folder. Also writes truth.json: the content of each fixture and of
each torch-*.pickle, read by Python's own pickle.

The fixtures follow the serializers of torch's releases by hand; torch-*.pickle are recordings (see record.py) and are
only described.
"""

import copy
import json
import lzma
import pickle
import struct
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MIB = 1 << 20
BASE = 0x7F0000000000
T0 = 1759252584000000


def frame(name: str, line: int) -> dict[str, Any]:
    return {"filename": f"{name}.py", "line": line, "name": name}


def event(action: str, addr: int, size: int, **more: Any) -> dict[str, Any]:
    where = {"device_free": addr} if action == "oom" else {"addr": addr}
    return {"action": action, **where, "size": size, "stream": 0, **more}


def block(size: int, state: str, requested: int, **more: Any) -> dict[str, Any]:
    return {"size": size, "requested_size": requested, "state": state, **more}


def segment(blocks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "device": 0,
        "address": BASE,
        "total_size": sum(b["size"] for b in blocks),
        "allocated_size": sum(b["size"] for b in blocks if b["state"] == "active_allocated"),
        "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
        "stream": 0,
        "segment_type": "small",
        **more,
        "blocks": blocks,
    }


def bare_list() -> Any:
    """torch 1.x: a list of segments, blocks without addresses, requests in their history."""
    past = [
        {"addr": BASE, "real_size": 1000, "frames": [frame("newest", 1)]},
        {"addr": BASE, "real_size": 700, "frames": []},
    ]
    blocks = [
        {"size": 1024, "state": "active_allocated", "history": past},
        {
            "size": 512,
            "state": "active_pending_free",
            "history": [{"addr": BASE + 1024, "real_size": 12, "frames": []}],
        },
        {"size": 2048, "state": "inactive", "history": [{"addr": BASE, "real_size": 5, "frames": []}]},
        {"size": 2 * MIB - 3584, "state": "active_allocated"},
    ]
    return [
        segment(blocks),
        segment([{"size": 20 * MIB, "state": "inactive"}], address=BASE + 4 * MIB, segment_type="large"),
    ]


def no_time() -> Any:
    """torch 2.0: traces without a clock, requested_size without addresses; "free" was one word once."""
    python = [frame("inner", 10), frame("outer", 20)]
    events = [
        event("segment_alloc", BASE, 2 * MIB, frames=[]),
        event("alloc", BASE, 1000, frames=python),
        event("alloc", BASE + 1024, 3000, frames=list(python)),
        event("free_requested", BASE, 1000, frames=python),
        event("free", BASE, 1000, frames=python),
    ]
    blocks = [
        block(1024, "inactive", 1000),
        block(3072, "active_allocated", 3000),
        block(2 * MIB - 4096, "inactive", 77),
    ]
    return {"segments": [segment(blocks, requested_size=3000)], "device_traces": [events, []]}


def user_defined() -> Any:
    """torch 2.2 and on: the clock, private pools, expandable segments, and marks inside the trace."""
    events = [
        event("segment_map", BASE, 2 * MIB, time_us=T0, frames=[]),
        event("alloc", BASE, 5, time_us=T0 + 1, frames=[]),
        event("user_defined", 0, 0, time_us=T0 + 1, frames=[frame("marker", 3)], user_metadata="here"),
        event("oom", 12345, 1 << 40, time_us=T0 + 2),
        event("segment_unmap", BASE + MIB, MIB, time_us=T0 + 3),
        event("something_new", 1, 2, time_us=T0 + 4),
    ]
    blocks = [
        block(512, "active_allocated", 5, address=BASE, frames=[]),
        block(2 * MIB - 512, "inactive", 3, address=BASE + 512),
    ]
    seg = segment(blocks, segment_pool_id=(3, 0), is_expandable=True, frames=[frame("seg", 8)], requested_size=5)
    return {"segments": [seg], "device_traces": [events]}


def settings() -> Any:
    """allocator_settings in full, external_annotations, compile_context; three devices, one without events."""
    allocator = {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,roundup_power2_divisions:[1:4,64:8]",
        "max_split_size": 128 * MIB,
        "garbage_collection_threshold": 0.8,
        "expandable_segments": True,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "large_segment_size": 64 * MIB,
        "new_setting": [1, 2],
        "roundup_power2_divisions": {"1": 4, "2": 0, "64": 8},
    }
    notes = [
        {"name": "Optimizer.step#AdamW.step", "stage": s, "device": d, "time_us": T0 + d}
        for d in (0, 2)
        for s in ("START", "END")
    ]
    traces = [
        [event("alloc", BASE + d * MIB, 100 + d, time_us=T0 + d, compile_context="N/A", stream=20496 * d)]
        if d != 1
        else []
        for d in range(3)
    ]
    return {"segments": [], "device_traces": traces, "allocator_settings": allocator, "external_annotations": notes}


def metadata() -> Any:
    """torch 2.10 and on: user_metadata in every shape, pool_id, internal_metadata, pinned memory, unknown keys."""
    shapes: list[Any] = [
        "",
        "1",
        "4294967295",
        "4294967296",
        "007",
        "forward",
        "-1",
        {"k": 5, "n": [1, 2.5, None, "x"]},
        None,
        "12a",
        "٣",
        "forward",
    ]
    events = [
        event("alloc", BASE + 512 * i, i, time_us=T0 + i, user_metadata=m, pool_id=(i % 3, i % 2), compile_context=None)
        for i, m in enumerate(shapes)
    ]
    events[3]["internal_metadata"] = "mallocWithAddress"
    events[4]["internal_metadata"] = ""
    events[5]["color"] = {"action": 7, "frames": "none"}
    events[6]["hash"] = 1 << 100
    pinned = [event("alloc", 4096, 4096, time_us="never", user_metadata=[])]
    odd = {"action": 3.5, "blocks": 7, "state": 1}
    return {
        "host_segments": [odd],
        "host_traces": [pinned, 5],
        "unknown": {str(i): odd for i in range(1500)},
        "segments": [],
        "device_traces": [events],
        "rank": 3,
    }


def cpp_frames() -> Any:
    """stacks="all": C++ frames, whose line is 2^64-1 or 0, and frames that fx augments."""
    deep = [{"name": f"at::f{i}(long)", "filename": "??", "line": 2**64 - 1} for i in range(1500)]
    fx = frame("graph", 4) | {"fx_node_op": "call_function", "fx_node_name": "mm", "fx_original_trace": "x"}
    events = [
        event("alloc", BASE, 4, time_us=T0, frames=deep),
        event("free_requested", BASE, 4, time_us=T0, frames=[fx, deep[0]]),
        event("free_completed", BASE, 4, time_us=T0, frames=[fx, deep[0]]),
        event("alloc", BASE, 4, time_us=T0, frames=deep[:1000]),
    ]
    return {"segments": [], "device_traces": [events]}


def shared_lists() -> Any:
    """Lists shared between events of one batch: a decoder that copies lists loses them."""
    a, b = [frame("a", 1)], [frame("a", 1), frame("b", 2)]
    events = [event("alloc", BASE + 512 * i, i, time_us=T0 + i, frames=(a, b)[i % 2]) for i in range(1200)]
    blocks = [block(512, "active_allocated", i, address=BASE + 512 * i, frames=b) for i in range(1001)]
    return {"segments": [segment(blocks)], "device_traces": [events[:10] + events[5:1150], events[:3]]}


def cpp_pickle(v: Any) -> bytes:
    """torch's C++ writer: protocol 2, one batch a container, the memo written after the value."""
    memo: dict[Any, int] = {}
    out = bytearray(b"\x80\x02")

    def put(key: Any) -> None:
        memo[key] = n = len(memo)
        out.extend(b"q" + bytes([n]) if n < 256 else b"r" + struct.pack("<I", n))

    def get(key: Any) -> bool:
        if key not in memo:
            return False
        n = memo[key]
        out.extend(b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n))
        return True

    def push(v: Any) -> None:
        if isinstance(v, str):
            if not get(v):
                out.extend(b"X" + struct.pack("<I", len(v.encode())) + v.encode())
                put(v)
        elif isinstance(v, bool):
            out.extend(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            if 0 <= v < 256:
                out.extend(b"K" + bytes([v]))
            elif -(2**31) <= v < 2**31:
                out.extend(b"J" + struct.pack("<i", v))
            else:
                out.extend(b"\x8a\x08" + struct.pack("<Q", v))
        elif isinstance(v, float):
            out.extend(b"G" + struct.pack(">d", v))
        elif isinstance(v, tuple):
            for x in v:
                push(x)
            out.extend(b"\x86")
        elif isinstance(v, list):
            if get(id(v)):
                return
            out.extend(b"](")
            for x in v:
                push(x)
            out.extend(b"e")
            put(id(v))
        else:
            out.extend(b"}(")
            for k, x in v.items():
                push(k)
                push(x)
            out.extend(b"u")

    push(v)
    return bytes(out) + b"."


def cpp_writer() -> Any:
    stack, empty = [frame("main", 3)], []
    events = [
        event("alloc", BASE + 512 * i, i % 400, time_us=T0 + i, frames=(stack, empty)[i % 2]) for i in range(1300)
    ]
    blocks = [block(2 * MIB, "active_allocated", 9, address=BASE, frames=stack)]
    seg = segment(blocks, segment_pool_id=(0, 0), is_expandable=False, frames=empty)
    return {
        "segments": [seg],
        "device_traces": [events],
        "allocator_settings": {"max_split_size": 2**64 - 1, "garbage_collection_threshold": 0.0},
    }


# The functions below read a snapshot's content in plain Python.

ACTIONS = [
    "unknown",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
    "user_defined",
    "annotate",
]


def line_of(n: int) -> int:
    return n - 2**64 if n >= 2**63 else n


def stack_of(frames: Any) -> list[list[Any]]:
    return [[f.get("name", ""), f["filename"], line_of(f["line"])] for f in frames or []]


def pool_of(pair: Any) -> int:
    return pair[0] << 32 | pair[1]


def mark_and_text(m: Any) -> tuple[int, str]:
    if isinstance(m, dict):
        return 0, json.dumps(m, separators=(",", ":"))
    if m and m.isascii() and m.isdigit() and int(m) < 2**32:
        return int(m), ""
    return 0, m or ""


def event_row(e: dict[str, Any]) -> dict[str, Any]:
    mark, text = mark_and_text(e.get("user_metadata"))
    action = {"free": "free_completed"}.get(e["action"], e["action"])
    return {
        "action": action if action in ACTIONS else "unknown",
        "addr": e["device_free"] if action == "oom" else e["addr"],
        "size": e["size"],
        "stream": e["stream"],
        "time_ns": e.get("time_us", 0) * 1000,
        "mark": mark,
        "text": text,
        "stack": stack_of(e.get("frames")),
        "pool": pool_of(e.get("pool_id", (0, 0))),
        "internal": e.get("internal_metadata", ""),
    }


def segment_row(s: dict[str, Any]) -> dict[str, Any]:
    address, blocks = s["address"], []
    for b in s["blocks"]:
        past = (b.get("history") or [{}])[0]
        requested = b.get("requested_size", past.get("real_size", -1))
        frames = b.get("frames") or (past.get("frames") if b["state"] != "inactive" else [])
        blocks.append(
            [
                b.get("address", address),
                b["size"],
                -1 if b["state"] == "inactive" else requested,
                b["state"],
                stack_of(frames),
            ]
        )
        address += b["size"]
    keys = ("device", "address", "total_size", "allocated_size", "active_size", "stream")
    return {k: s[k] for k in keys} | {
        "requested_size": s.get("requested_size", -1),
        "type": s["segment_type"],
        "pool": pool_of(s.get("segment_pool_id", (0, 0))),
        "expandable": s.get("is_expandable", False),
        "stack": stack_of(s.get("frames")),
        "blocks": blocks,
    }


def settings_row(a: dict[str, Any] | None) -> dict[str, Any]:
    a = dict(a or {"absent": True})
    split = line_of(a.get("max_split_size", -1))
    return {
        "present": "absent" not in a,
        "conf": a.get("PYTORCH_CUDA_ALLOC_CONF", ""),
        "max_split_size": split,
        "large_segment_size": a.get("large_segment_size", 0),
        "gc": a.get("garbage_collection_threshold", 0),
        "expandable": a.get("expandable_segments", False),
        "roundup": {k: v for k, v in a.get("roundup_power2_divisions", {}).items() if v},
    }


def view(s: Any) -> dict[str, Any]:
    if isinstance(s, list):
        s = {"segments": s}
    traces = s.get("device_traces", [])
    return {
        "devices": [[event_row(e) for e in t] for t in traces],
        "segments": [segment_row(x) for x in s.get("segments", [])],
        "settings": settings_row(s.get("allocator_settings")),
        "annotations": [
            [a["name"], a["stage"], a["device"], a["time_us"] * 1000] for a in s.get("external_annotations", [])
        ],
        "trace_keys": sorted({k for t in traces for e in t for k in e}),
    }


def compact(rows: dict[str, Any]) -> dict[str, Any]:
    """Replaces long traces by 40 rows, the number of rows and sums, so that truth.json stays small."""
    out = copy.copy(rows)
    out["devices"] = [
        {
            "events": len(t),
            "first": t[:40],
            "sums": [sum(e[k] for e in t) % 2**64 for k in ("addr", "size", "time_ns", "mark", "pool")],
            "stacks": [sum(len(e["stack"]) for e in t), sum(f[2] for e in t for f in e["stack"]) % 2**64],
        }
        for t in rows["devices"]
    ]
    out["segments"] = [
        s | {"blocks": s["blocks"][:40], "block_count": len(s["blocks"]), "block_bytes": sum(b[1] for b in s["blocks"])}
        for s in rows["segments"]
    ]
    for d in out["devices"]:
        for i, e in enumerate(d["first"]):
            d["first"][i] = e | {"stack": e["stack"][:3], "depth": len(e["stack"])}
    return out


def write(name: str, data: bytes) -> None:
    """Writes a fixture, compressed if it is large, so that the repository stays small."""
    if len(data) > 16 << 10:
        (HERE / f"{name}.pickle.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    else:
        (HERE / f"{name}.pickle").write_bytes(data)


def main() -> None:
    truth = {}
    fixtures = [bare_list, no_time, user_defined, settings, metadata, cpp_frames, shared_lists]
    for i, make in enumerate(fixtures):
        write(make.__name__, pickle.dumps(make(), protocol=2 + i % 4))
    write("cpp_writer", cpp_pickle(cpp_writer()))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        both = no_time() | {k: v for k, v in settings().items() if k not in ("segments", "device_traces")}
        both["device_traces"][1] = user_defined()["device_traces"][0]
        write(f"protocol_{protocol}", pickle.dumps(both, protocol=protocol))
    for path in sorted(HERE.glob("*.pickle*")):
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as f:
            truth[path.name.partition(".pickle")[0]] = compact(view(pickle.load(f)))
    (HERE / "truth.json").write_text(
        json.dumps(truth, indent=None, separators=(",", ":"), sort_keys=True).replace('},"', '},\n"') + "\n"
    )


if __name__ == "__main__":
    main()
