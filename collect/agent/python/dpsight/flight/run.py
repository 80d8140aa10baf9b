"""Writes a run's folder into a store: a copy of the journal so far, samples, and a manifest. dpsight ingest adds the
tables."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import secrets
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from dpsight import kinds
from dpsight.environment import gather
from dpsight.flight.sampler import INTERVAL, Sampler
from dpsight.journal import RECORD
from dpsight.masking import mask, masked
from dpsight.recorder import recorder

SAMPLES = "samples.jsonl"
_MOST_NAME = 64
_CHUNK = 1 << 20


def new_folder(store: Path, name: str) -> Path:
    """Makes a folder for a run. The folder's name is made of the time, the run's name and a random part, as dpsight
    collect makes it, so it is unique."""
    safe = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:_MOST_NAME].strip("-.") or "run"
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    folder = store / f"{moment}-{safe}-{secrets.token_hex(3)}"
    (folder / "spool").mkdir(parents=True)
    folder.chmod(0o700)
    return folder


def name_of_process() -> str:
    """The default name of a run: the script's name, or the name of the program that runs it."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    name = Path(main or (sys.argv[0] if sys.argv else "") or sys.executable).name.removesuffix(".py")
    rank = os.environ.get("RANK", "")
    return f"{name}-rank{rank}" if rank.isdecimal() else name


def copy_journal(folder: Path, last: int) -> None:
    """Copies what is written of the journal, and ends the copy properly. last: the number of the journal's last
    mark."""
    journal = recorder.journal
    assert journal is not None
    start = os.path.basename(journal.base).partition("-")[2]
    base = folder / "spool" / f"attached-{start}"  # not the process's: it would be read as growing
    _copy(f"{journal.base}.marks", f"{base}.marks", (last + 1) * RECORD)
    _copy(f"{journal.base}.frames", f"{base}.frames", None)
    end = json.dumps({"reason": "attached", "marks": last, "drains": 0, "drain_ns": 0, "steps": 0}).encode()
    head, length = bytes((kinds.FRAME_END, 0, 0, 0)), struct.pack("<Q", len(end))
    crc = zlib.crc32(end, zlib.crc32(length, zlib.crc32(head)))
    with open(f"{base}.frames", "ab") as file:
        file.write(head + struct.pack("<I", crc) + length + end)


def _copy(source: str, target: str, size: int | None) -> None:
    with open(source, "rb") as old, open(target, "xb") as new:
        left = os.fstat(old.fileno()).st_size if size is None else size
        while left > 0 and (part := old.read(min(_CHUNK, left))):
            new.write(part)
            left -= len(part)


def write_samples(folder: Path, samples: list[dict[str, Any]]) -> None:
    """Writes the sampler's samples, one a line."""
    with open(folder / "spool" / SAMPLES, "x", encoding="ascii") as file:
        for sample in samples:
            file.write(json.dumps(sample, separators=(",", ":")) + "\n")


def write_manifest(
    folder: Path, said: dict[str, str], since_ns: int, sampler: Sampler, attached: dict[str, Any]
) -> None:
    """Writes run.json last, in one piece, since a folder without it does not count as a run. said: the run's name, its
    status and the reason for the status. attached: facts about the recorder."""
    predicted = recorder.settings.source == "predicted"
    environment = gather()
    document: dict[str, Any] = {
        "schema": "dpsight.run/2",
        "run_id": folder.name,
        "name": mask(said["name"]),
        "source": recorder.settings.source,
        "profile": os.environ.get("DPSIGHT_PROFILE", "h200") if predicted else None,
        "status": said["status"],
        "reason": mask(said["reason"]),
        "exit_code": None,
        "signal": None,
        "command": masked([*sys.orig_argv]),
        "params": {},
        "bare": False,
        "suite": None,
        "start": _moment(since_ns),
        "end": _moment(time.time_ns()),
        "host": {"name": platform.node(), "os": "linux", "arch": "", "cpu": "", "cores": 0, "memory_bytes": 0},
        "gpus": _gpus(),
        "driver": None,
        "interpreter": {"path": sys.executable, "chosen": "command"},
        "environment": {**environment, "variables": masked(environment["variables"])},
        "privacy": None,
        "git": None,
        "isolation": None,
        "collector": {
            "version": "",
            "sample_interval_ns": int(INTERVAL * 1e9),
            "cpu_ns": 0,
            "setup_cpu_ns": None,
            "seal_cpu_ns": None,
            "samples": 0,
            "missed_ticks": 0,
            "nvml": sampler.nvml,
            "nvml_reason": sampler.reason,
            "left_running": 0,
            "uninjected": [],
            "sealed_journals": 0,
        },
        "attached": attached,
        "import": None,
        "warnings": [],
    }
    partial = folder / "run.json.partial"
    partial.write_bytes(_signed(json.dumps(document, indent=2, ensure_ascii=False)))
    partial.replace(folder / "run.json")


def _signed(document: str) -> bytes:
    """Appends a digest of the document's text to a document, as schemas/digest.go checks it."""
    body = document.removesuffix("\n}").encode(errors="backslashreplace")
    digest = hashlib.sha256(body).hexdigest()
    return body + b',\n  "digest": "sha256:' + digest.encode() + b'"\n}\n'


def _gpus() -> list[dict[str, Any]]:
    if not recorder.cuda:
        return []
    out = []
    for i in range(recorder.torch.cuda.device_count()):
        properties = recorder.torch.cuda.get_device_properties(i)
        out.append(
            {
                "index": i,
                "name": properties.name,
                "uuid": f"GPU-{properties.uuid}",
                "total_bytes": properties.total_memory,
            }
        )
    return out


def _moment(ns: int) -> str:
    """Formats a time for documents."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:09d}Z"
