"""The experiment's options, from the table options.json, which the Go program also contains.

options.py does not import torch, so that a wrong option is refused within milliseconds and before a GPU is used.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn


class UsageError(Exception):
    """A wrong option or a missing installation; its text is one sentence for the user."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options of one experiment. An option is None if it does not apply to the model or method."""

    method: str
    model: str
    preset: str
    batch_size: int
    physical_batch_size: int
    num_iter: int
    warmup_iter: int
    optimizer: str
    learning_rate: float
    precision: str
    checkpointing: bool
    zero_grad: str
    seed: int
    clipping: str | None = None
    grad_sample_mode: str | None = None
    noise_multiplier: float | None = None
    max_grad_norm: float | None = None
    poisson: bool | None = None
    target_unclipped_quantile: float | None = None
    clipbound_learning_rate: float | None = None
    min_clipbound: float | None = None
    max_clipbound: float | None = None
    unclipped_num_std: float | None = None
    vocab_size: int | None = None
    hidden_dim: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    seq_len: int | None = None
    mlp_dims: str | None = None

    @property
    def mlp_widths(self) -> list[int]:
        """Returns the MLP's widths from input to output."""
        return [int(width) for width in (self.mlp_dims or "").split(",")]


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """Reads options.json, which is beside the package both in the repository and where it was unpacked."""
    path = Path(__file__).resolve().parent.parent / "options.json"
    return json.loads(path.read_text(encoding="utf-8"))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(argv: list[str]) -> tuple[Options, str]:
    """Returns the options and the device (auto, cuda or cpu). Raises UsageError."""
    parser = _Parser(prog="python -m dpsight_experiments", description=__doc__, allow_abbrev=False)
    for group in ("method", "model", "training"):
        arguments = parser.add_argument_group(group)
        for option in table()["options"]:
            if option["group"] == group:
                flag = {"nargs": "?", "const": "true"} if option["type"] == "bool" else {}
                arguments.add_argument(option["flag"], dest=option["name"], help=option["help"], **flag)
    parser.add_argument("--device", choices=["auto", "cuda", "cpu"], default="auto", help="auto: CUDA if there is any")
    given = vars(parser.parse_args(argv))
    device = given.pop("device")
    return resolve({name: text for name, text in given.items() if text is not None}), device


def resolve(given: Mapping[str, str]) -> Options:
    """Applies aliases, the preset, defaults and checks, as the Go side's Resolve does. Raises UsageError."""
    options = table()["options"]
    values: dict[str, Any] = {o["name"]: _value(o, given[o["name"]]) for o in options if o["name"] in given}
    # This is done before defaults are set: an option that a method fixes may conflict with a given option, but never
    # with a default.
    _apply_method(values)
    for option in options:
        if option["default"] is not None:
            values.setdefault(option["name"], option["default"])
    for name, value in _preset(values["preset"], values["model"]).items():
        values.setdefault(name, value)
    for option in options:
        name = option["name"]
        if any(_text(values.get(other)) not in choices for other, choices in option.get("only", {}).items()):
            values.pop(name, None)
        elif name not in values and "default_of" in option:
            values[name] = values[option["default_of"]]
        elif name not in values:
            raise UsageError(f"no {name}: give {option['flag']}")
    _check_rules(values)
    return Options(**values)


def _value(option: dict[str, Any], text: str) -> Any:
    name, kind, text = option["name"], option["type"], text.strip()
    if not text:
        raise UsageError(f"{name} is empty")
    if kind == "bool":
        if text.lower() not in ("true", "yes", "on", "1", "false", "no", "off", "0"):
            raise UsageError(f'{name} must be true or false, not "{text}"')
        return text.lower() in ("true", "yes", "on", "1")
    if kind in ("int", "float"):
        return _number(option, text)
    if kind == "enum" and text not in option["choices"]:
        raise UsageError(_unknown(name, text, option["choices"], option["choices"]))
    if "pattern" in option and not re.fullmatch(option["pattern"], text):
        raise UsageError(f'{name} must look like {option["example"]}, not "{text}"')
    return text


def _number(option: dict[str, Any], text: str) -> int | float:
    name, whole = option["name"], option["type"] == "int"
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:
        raise UsageError(f'{name} must be a {"whole " if whole else ""}number, not "{text}"')
    least = option.get("min")
    if least is not None and option.get("exclusive_min") and number <= least:
        raise UsageError(f"{name} must be more than {least}, not {text}")
    if least is not None and number < least:
        raise UsageError(f"{name} must be at least {least}, not {text}")
    if "max" in option and number > option["max"]:
        raise UsageError(f"{name} must be at most {option['max']}, not {text}")
    return number


def _apply_method(values: dict[str, Any]) -> None:
    """Replaces the method's name by its id, and sets the options that the method fixes."""
    methods, text = table()["methods"], values.get("method")
    ids = [m["id"] for m in methods if "of" not in m]
    if text is None:
        raise UsageError(f"no method: give --method {', '.join(ids)}")
    names = {name.lower(): (name, m) for m in methods for name in (m["id"], *m["aliases"])}
    if text.lower().replace("-", "_") not in names:
        raise UsageError(_unknown("method", text, ids, [name for name, _ in names.values()]))
    name, method = names[text.lower().replace("-", "_")]
    values["method"] = method.get("of", method["id"])
    for option, value in method.get("fixes", {}).items():
        if values.setdefault(option, value) != value:
            raise UsageError(f"method {name} goes with {option} {value}, not {values[option]}")


def _preset(name: str, model: str) -> dict[str, Any]:
    presets = {preset["name"]: preset for preset in table()["presets"]}
    if name not in presets:
        raise UsageError(_unknown("preset", name, list(presets), list(presets)))
    if model not in presets[name]:
        known = ", ".join(n for n, preset in presets.items() if model in preset)
        raise UsageError(f"preset {name} has no sizes for model {model}; known: {known}")
    return presets[name][model]


def _check_rules(values: dict[str, Any]) -> None:
    for rule in table()["rules"]:
        if "divides" in rule:
            divisor, number = rule["divides"]["divisor"], rule["divides"]["number"]
            if divisor in values and number in values and values[number] % values[divisor]:
                raise UsageError(f"{divisor} must be a divisor of {number} {values[number]}, not {values[divisor]}")
        elif "less" in rule:
            number, bound, times = rule["less"]["number"], rule["less"]["bound"], rule["less"]["times"]
            if number in values and bound in values and values[number] >= times * values[bound]:
                factor = "" if times == 1 else f"{_plain(times)} times "
                raise UsageError(
                    f"{number} {_plain(values[number])} must be less than {factor}{bound} {_plain(values[bound])}"
                )
        elif all(_text(values.get(name)) in refused for name, refused in rule["refuse"]["when"].items()):
            raise UsageError(rule["refuse"]["why"].format_map(values))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(number: float) -> str:
    """Writes a number with as few digits as the Go program does: 1 for 1.0."""
    return repr(float(number)).removesuffix(".0")


def _unknown(noun: str, text: str, known: list[str], candidates: list[str]) -> str:
    guess = difflib.get_close_matches(text, candidates, n=1)
    return f'unknown {noun} "{text}"' + (f"; did you mean {guess[0]}?" if guess else f"; known: {', '.join(known)}")
