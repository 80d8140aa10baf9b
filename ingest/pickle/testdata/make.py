#!/usr/bin/env python3
"""Writes values.json.gz into its folder: values that Python pickled in every protocol, each with JSON for the value.

A value's JSON tags what JSON cannot tell apart: {"int": "…"}, {"float": "…"}, {"bytes": hex}, {"tuple": […]}, {"dict":
[[k, v], …]}.
"""

import gzip
import json
import pickle
import sys
from pathlib import Path
from typing import Any


def tagged(v: Any) -> Any:
    if v is None or isinstance(v, (bool, str)):
        return v.encode("utf-8", "replace").decode() if isinstance(v, str) else v
    if isinstance(v, int):
        return {"int": str(v)}
    if isinstance(v, float):
        return {"float": v.hex()}
    if isinstance(v, (bytes, bytearray)):
        return {"bytes": v.hex()}
    if isinstance(v, tuple):
        return {"tuple": [tagged(x) for x in v]}
    if isinstance(v, list):
        return [tagged(x) for x in v]
    return {"dict": [[tagged(k), tagged(x)] for k, x in v.items()]}


shared = [1, 2]
frame = {"name": "f", "line": 3}
VALUES: dict[str, Any] = {
    "none": None,
    "bools": [True, False],
    "ints": [0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**31, 2**32, 2**63 - 1, -(2**63)],
    "big ints": [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**200, -(2**200), 2**71 - 1],
    "floats": [0.0, -0.0, 1.5, -2.25e-300, float("inf"), 0.1],
    "strings": [
        "",
        "a",
        "héllo",
        "\u4f60\U0001f600",
        "quote ' \" \\ \n\t\r\x00\x1f",
        "x" * 255,
        "y" * 256,
        "z" * 700,
        "\\u0041",
        "\x85\xa0\xff",
    ],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((1, ()), [()])],
    "lists": [[], [[]], [1, [2, [3]]], list(range(1001)), [[0]] * 1001],
    "dicts": [{}, {"a": 1}, {"a": {"b": {}}, 1: 2, (1, 2): 3, None: 0}, {i: None for i in range(1001)}],
    "shared lists": {"a": shared, "b": shared, "c": [shared, shared], "d": (shared, [shared])},
    "shared dicts": [[frame, frame], [frame], {"f": frame}],
    "shared in one batch": (frame, [frame], [shared, [shared]]),
}
BYTES = {"bytes": [b"", b"abc", bytes(range(256)), b"q" * 300]}


def main() -> None:
    out = []
    for name, value in (VALUES | BYTES).items():
        protocols = range(3 if name in BYTES else 0, pickle.HIGHEST_PROTOCOL + 1)
        pickles = {str(p): pickle.dumps(value, protocol=p).hex() for p in protocols}
        out.append({"name": name, "value": tagged(value), "pickles": pickles})
    text = "[\n" + ",\n".join(json.dumps(x) for x in out) + "\n]\n"
    Path(sys.argv[0]).with_name("values.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
