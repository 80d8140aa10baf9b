"""Runs an experiment from its command line to the end of training."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from dpsight_experiments.options import Options, UsageError, parse

# The tested release of Opacus: the first whose hooks attach to a model without wrapping it.
OPACUS = "1.6.0"


def main(argv: list[str]) -> int:
    """Runs an experiment. Returns 0, or 2 after one sentence on stderr if the options or the installation do not allow
    the experiment."""
    try:
        options, device = parse(argv)
        _check_installed(options)
        _run(options, device)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _check_installed(options: Options) -> None:
    # find_spec looks for a module without importing it: importing torch alone takes seconds.
    if find_spec("torch") is None:
        raise UsageError("torch is not installed: pip install torch")
    if options.method == "vanilla":
        return
    if find_spec("opacus") is None:
        raise UsageError(f"opacus is not installed: pip install opacus=={OPACUS}")
    try:
        installed = version("opacus")
    except PackageNotFoundError:
        return  # a source tree on the path has no version
    if _release(installed) < _release(OPACUS):
        raise UsageError(f"opacus {installed} is too old: pip install opacus=={OPACUS}")


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def _run(options: Options, device_name: str) -> None:
    import torch

    from dpsight_experiments._agent import phase
    from dpsight_experiments.data import data_loader
    from dpsight_experiments.loop import train
    from dpsight_experiments.methods import prepare
    from dpsight_experiments.models import make_model

    if device_name == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"no CUDA device: torch {torch.__version__} finds none; --device cpu trains without one")
    device = torch.device("cuda" if device_name != "cpu" and torch.cuda.is_available() else "cpu")

    torch.manual_seed(options.seed)
    with phase("setup.data"):
        loader = data_loader(options)
    with phase("setup.model"):
        model = make_model(options, device)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{options.method} {options.model} on {device}: {parameters:,} parameters", flush=True)
    train(prepare(options, model, loader), options, device)
