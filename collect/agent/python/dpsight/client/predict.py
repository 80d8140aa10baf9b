"""Predicts the GPU memory that a script or a function needs, by running dpsight predict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsight.client.program import environment, find

# Code that calls a function by its name in a script's file, which is no module, or in a module.
IN_SCRIPT = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='dpsight.predict')[sys.argv[2]]()"
IN_MODULE = "import importlib, sys; getattr(importlib.import_module(sys.argv[1]), sys.argv[2])()"


@dataclass(frozen=True)
class Prediction:
    """The result of a prediction. Sizes are in bytes."""

    fits: bool | None  # None if the run used no GPU memory, or if the answer is unknown
    peak: int | None  # peak allocated
    reserved: int | None  # highest reserved, which must fit into the device's memory
    memory: int  # memory of the device
    device: str
    breakdown: dict[str, int]  # bytes at the peak, by category
    confidence: str | None  # "exact expected", "close" or "indicative"
    reasons: list[str]  # reasons for the confidence
    document: dict[str, Any]  # the whole document of dpsight predict --format json about the run


class PredictionError(RuntimeError):
    """There is no prediction: the script failed, or the phantom GPU does not work on this machine."""


def predict(
    target: str | os.PathLike[str] | Callable[[], object],
    arguments: tuple[str, ...],
    device: str | None,
    store: str | os.PathLike[str] | None,
) -> Prediction:
    options = ["--device", device] if device else []
    variables = environment()
    if callable(target):
        command = _call(target)
        options += ["--name", target.__name__]
        variables["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    else:
        command = [os.fspath(target), *arguments]
    with tempfile.TemporaryDirectory() as work:
        options += ["--store", os.fspath(store) if store else work]
        program = [find(), "predict", "--quiet", "--format", "json", *options, "--", sys.executable, *command]
        done = subprocess.run(program, env=variables, capture_output=True, text=True)
    try:
        (run,) = json.loads(done.stdout)["runs"]
    except (ValueError, KeyError):
        raise PredictionError(done.stderr.strip() or f"dpsight predict ended with code {done.returncode}") from None
    if run["status"] == "failed":
        raise PredictionError(f"the script failed:\n{done.stderr.strip()}")
    confidence = run["confidence"] or {"level": None, "reasons": []}
    return Prediction(
        run["fits"],
        run["peak_bytes"],
        run["peak_reserved_bytes"],
        run["memory_bytes"],
        run["gpu"],
        {row["category"]: row["bytes"] for row in run["categories"]},
        confidence["level"],
        confidence["reasons"],
        run,
    )


def _call(function: Callable[[], object]) -> list[str]:
    """The arguments with which an interpreter calls a function without arguments, in its own process."""
    name, module = function.__qualname__, function.__module__
    if not name.isidentifier():
        raise ValueError(f"dpsight.predict needs a function that a file defines by name, and {name} is none")
    if module != "__main__":
        return ["-c", IN_MODULE, module, name]
    file = getattr(sys.modules["__main__"], "__file__", None)
    if not file:
        raise ValueError(f"{name} was defined at a prompt or in a notebook: write it to a file and import it")
    return ["-c", IN_SCRIPT, os.path.abspath(file), name]
