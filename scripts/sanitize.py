#!/usr/bin/env python3
"""Makes a store of recorded runs fit to be published: sanitize.py STORE.

Replaces host names, user names, GPU UUIDs and absolute paths in every run.json and log. Journals hold none of these
by design (the agent writes neither arguments nor environment); examples/examples_test.go decompresses and searches
them all.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F-]{36}")
PATH = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+([\w.+@-]*)")


def clean(text: str, host: str) -> str:
    """Text without UUIDs, paths (their last part stays) and the host's name."""
    text = UUID.sub(r"\1-00000000-0000-0000-0000-000000000000", text)
    text = PATH.sub(r"\1", text)
    return text.replace(host, "gpu-host") if host else text


def clean_value(value: Any, host: str) -> Any:
    if isinstance(value, str):
        return clean(value, host)
    if isinstance(value, list):
        return [clean_value(v, host) for v in value]
    if isinstance(value, dict):
        return {k: clean_value(v, host) for k, v in value.items()}
    return value


def clean_run(folder: Path) -> None:
    manifest_path = folder / "run.json"
    manifest = json.loads(manifest_path.read_text())
    host = manifest["host"]["name"]
    manifest = clean_value(manifest, host)
    manifest["host"]["name"] = "gpu-host"
    manifest["git"] = None
    manifest_path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    for log in folder.glob("*.log"):
        log.write_text(clean(log.read_text(errors="replace"), host))


def main(store: str) -> None:
    runs = sorted(p.parent for p in Path(store).glob("*/run.json"))
    if not runs:
        sys.exit(f"sanitize: no run in {store}")
    for run in runs:
        clean_run(run)
    print(f"sanitized {len(runs)} runs")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sanitize.py STORE")
    main(sys.argv[1])
