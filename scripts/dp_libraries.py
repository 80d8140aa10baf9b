"""Measures how much of the memory of DP libraries' own example scripts has an owner: predicts the scripts and prints a
table. Fails if more than 3 % of the bytes are other or untraced, or if more than 10 % are known by phase only, in
training or in evaluation.

    git clone https://github.com/pytorch/opacus CLONES/opacus
    git clone https://github.com/awslabs/fast-differential-privacy CLONES/fast-differential-privacy
    git clone https://github.com/lxuechen/private-transformers CLONES/private-transformers
    python3 scripts/dp_libraries.py --dpsight ./dpsight --python PYTHON --clones CLONES --store STORE [NAME…]

PYTHON has torch, torchvision, opacus, timm, transformers 4.28, ml-swissknife, prv-accountant, fire and tqdm. The
scripts run unchanged, with small models, random weights, and a few samples of zeros instead of downloads. dpsight's
repository contains none of the libraries' code.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import os
import runpy
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

FASTDP, OPACUS, PRIVATE = "fast-differential-privacy", "opacus", "private-transformers"
VIT = "examples/image_classification/CIFAR_TIMM.py --epochs 1 --bs 16 --mini_bs 8 --model vit_tiny_patch16_224"
RESNET = VIT.replace("vit_tiny_patch16_224", "resnet18")
IMAGES = "examples/image_classification/main.py --train_batch_size 16 --per_device_train_batch_size 8"
IMAGES += " --test_batch_size 16 --epochs 1"
TEXT = "examples.table2text.run_language_modeling --model_name_or_path {folder} --output_dir {folder}/out"
TEXT += " --overwrite_output_dir"
TEXT += (
    " --task_mode e2e --data_folder {folder} --line_by_line --format_mode cat --max_seq_len 100 --do_train --do_eval"
)
TEXT += " --per_device_train_batch_size 8 --gradient_accumulation_steps 2 --per_device_eval_batch_size 8"
TEXT += " --num_train_epochs 1 --per_example_max_grad_norm 0.1 --target_epsilon 8 --target_delta 8e-6"
TEXT += " --skip_generation yes --evaluation_strategy no --save_steps 0 --report_to none --no_cuda no"
RUNS = {
    "opacus-mnist": (OPACUS, "examples/mnist.py --device cuda -n 1 --data-root {folder}"),
    "opacus-cifar10": (OPACUS, "examples/cifar10.py --device cuda --epochs 1 -b 32 --data-root {folder}"),
    "opacus-cifar10-ew": (
        OPACUS,
        "examples/cifar10.py --device cuda --epochs 1 -b 32 --data-root {folder} --grad_sample_mode ew",
    ),
    "opacus-lstm": (
        OPACUS,
        "examples/char-lstm-classification.py --data-root {folder}/names --epochs 2 -b 32 --test-every 1",
    ),
    "fastdp-bk-mixopt": (FASTDP, VIT),
    "fastdp-bk-ghost": (FASTDP, f"{VIT} --clipping_mode BK-ghost"),
    "fastdp-bk-layers": (FASTDP, f"{VIT} --clipping_style layer-wise"),
    "fastdp-bk-resnet": (FASTDP, RESNET),
    "fastdp-bitfit": (FASTDP, f"{VIT} --clipping_mode BiTFiT"),
    "private-vit-head": (PRIVATE, IMAGES),
    "private-vit": (PRIVATE, f"{IMAGES} --linear_probe False"),
    "private-gpt2": (PRIVATE, TEXT),
    "private-gpt2-ghost": (PRIVATE, f"{TEXT} --clipping_mode ghost"),
}
TRAINING = ("forward", "backward", "clip", "accumulate", "noise", "optimizer")
LIMITS = {"By phase only %": 10, "Other and untraced %": 3}
TITLES = ("Script", "Peak of", "MiB", "Tagged %", "By lifetime %", "By phase only %", "Other and untraced %")


def main() -> int:
    """Prints the table. Returns 1 if a script fails or a share exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dpsight", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--clones", required=True, type=Path)
    parser.add_argument("--store", required=True)
    parser.add_argument("--table", action="store_true", help="predict nothing, and print the table of the store's runs")
    parser.add_argument("names", nargs="*", default=list(RUNS), metavar="NAME")
    options = parser.parse_args()
    print("|".join(("", *TITLES, "")))
    print("|:---|:---" + "|---:" * (len(TITLES) - 2) + "|")
    beyond = 0
    for name in options.names or list(RUNS):
        if not options.table and predict(options, name):
            print(f"| {name} | failed, see {options.store}/{name}.log |")
            beyond = 1
            continue
        for what, phases in (("training", TRAINING), ("evaluation", ("eval",))):
            row = (name, what, *figures(options, name, phases))
            print("| " + " | ".join(row) + " |", flush=True)
            known = dict(zip(TITLES, row, strict=True))
            if any(known[title] == "–" or float(known[title]) > limit for title, limit in LIMITS.items()):
                beyond = 1
    return beyond


def predict(options: argparse.Namespace, name: str) -> int:
    """Predicts a library's script to its end, and returns the exit code."""
    library, command = RUNS[name]
    clone = (options.clones / library).resolve()
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        python = [options.python, str(Path(__file__).resolve()), "drive", str(clone)]
        script = command.format(folder=folder).split()
        command = [options.dpsight, "predict", "--store", options.store, "--name", name, "--quiet", "--steps", "all"]
        Path(options.store).mkdir(parents=True, exist_ok=True)
        with open(Path(options.store, f"{name}.log"), "w", encoding="utf-8") as log:
            return subprocess.run([*command, "--", *python, *script], stdout=log, stderr=log, check=False).returncode


def figures(options: argparse.Namespace, name: str, phases: tuple[str, ...]) -> list[str]:
    """Returns a row of the table: what is known of the bytes at the highest moment of the given phases."""
    best: dict[str, Any] | None = None
    for phase in phases:
        command = [options.dpsight, "breakdown", "--store", options.store, "--format", "json", "--at", f"phase={phase}"]
        done = subprocess.run([*command, name], capture_output=True, text=True, check=False)
        devices = json.loads(done.stdout)["runs"][0]["devices"] if done.returncode == 0 else []
        for device in devices:
            if best is None or device["allocated_bytes"] > best["allocated_bytes"]:
                best = device
    if best is None:
        return ["–"] * (len(TITLES) - 2)
    total, parts = best["allocated_bytes"], best["categories"]
    by_phase = sum(c["phase_only_bytes"] for c in parts)
    tagged = sum(c["tagged_bytes"] for c in parts)
    unknown = sum(c["bytes"] for c in parts if c["category"] in ("other", "untraced"))
    shares = (tagged, total - tagged - by_phase, by_phase, unknown)
    return [f"{total / 2**20:,.2f}", *(f"{100 * share / total:.2f}" for share in shares)]


def make_files(folder: Path) -> None:
    """Makes the files that the scripts read: names, a table that a script turns into text, and a small GPT-2 without
    weights."""
    (folder / "names").mkdir()
    for language in ("English", "German"):
        (folder / "names" / f"{language}.txt").write_text("\n".join(f"{language}{n}" for n in range(80)))
    for part, n in (("train", 48), ("valid", 16), ("test", 16)):
        (folder / f"src1_{part}.txt").write_text("name : A | type : B||There is a B that is called A .\n" * n)
        (folder / f"prompts_{part}.txt").write_text("name : A | type : B\n")
    letters = [chr(n) for n in (*range(33, 127), *range(161, 173), *range(174, 256))]
    letters += [chr(256 + n) for n in range(256 - len(letters))]
    vocabulary = {letter: n for n, letter in enumerate([*letters, "<|endoftext|>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    config = {"model_type": "gpt2", "vocab_size": len(vocabulary), "n_embd": 256, "n_layer": 4, "n_head": 4}
    (folder / "config.json").write_text(json.dumps(config))


def drive(clone: str, script: str, *arguments: str) -> None:
    """Runs a script of a clone with random weights, and with zeros as samples."""
    import torch
    import torchvision

    class Zeros(torch.utils.data.Dataset):
        def __init__(self, shape: tuple[int, ...], n: int) -> None:
            self.shape, self.n = shape, n

        def __len__(self) -> int:
            return self.n

        def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
            return torch.zeros(self.shape), 0

    opacus = clone.endswith(OPACUS)
    side = 28 if "mnist" in script else 32 if opacus else 224
    shape = (1 if "mnist" in script else 3, side, side)

    def samples(*_args: Any, train: bool = True, **_kwargs: Any) -> Zeros:
        return Zeros(shape, 128 if train else 64)

    for name in ("CIFAR10", "CIFAR100", "MNIST"):
        setattr(torchvision.datasets, name, samples)
    if not opacus:
        without_weights(samples)
    for missing in ("datasets", "deepspeed"):  # the scripts import these, but the code that runs here uses neither
        module: Any = types.ModuleType(missing)
        module.Dataset = Zeros
        module.__spec__ = importlib.machinery.ModuleSpec(missing, None)
        sys.modules.setdefault(missing, module)
    os.chdir(tempfile.mkdtemp())
    sys.argv = [script, *arguments]
    sys.path[0] = clone
    if script.endswith(".py"):
        path = Path(clone, script)
        sys.path.insert(0, str(path.parent))
        runpy.run_path(str(path), run_name="__main__")
    else:
        runpy.run_module(script, run_name="__main__")


def without_weights(samples: Any) -> None:
    """Makes the libraries create models with random weights where they would load weights."""
    import timm
    import torch
    import transformers
    from ml_swissknife import utils

    made = timm.create_model
    timm.create_model = lambda *args, **kwargs: made(*args, **{**kwargs, "pretrained": False})
    transformers.PreTrainedModel.from_pretrained = classmethod(lambda cls, _name, config, **_kwargs: cls(config))
    from_files = transformers.AutoConfig.from_pretrained

    def config(name: str, **kwargs: Any) -> Any:
        return transformers.ViTConfig() if name.startswith("google/vit") else from_files(name, **kwargs)

    def loaders(train_batch_size: int, test_batch_size: int, **_kwargs: Any) -> tuple[Any, Any]:
        loader = torch.utils.data.DataLoader
        return loader(samples(), batch_size=train_batch_size), loader(samples(train=False), batch_size=test_batch_size)

    transformers.AutoConfig.from_pretrained = config
    utils.get_loader = loaders


if __name__ == "__main__":
    sys.exit(drive(*sys.argv[2:]) if sys.argv[1:2] == ["drive"] else main())
