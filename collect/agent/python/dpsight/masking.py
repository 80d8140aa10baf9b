"""Keeps secrets out of everything the agent writes: values given in the environment or on the command line under a
name that says so, and passwords in URLs. The rules are the collector's (collect/mask), tested on the same cases."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Any

_WORDS = frozenset(
    "token key apikey secret password passwd passphrase credential credentials auth authorization bearer cookie".split()
)
# Flags of training scripts that end in one of the words and hold no secret.
_HARMLESS = re.compile(
    r"(pad|eos|bos|unk|mask|sep|cls|image|special|start|end|stop)_token"
    r"|(sort|metric|text|label|input|output|image|batch|group|data|dataset|state_dict|monitor)_key"
)
_URL_PASSWORD = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@")
# Shorter values, in bytes, would turn up everywhere: masking "true" or "1" protects nobody and ruins the text.
_SHORTEST = 6
MASK = "***"


def _split(name: str) -> list[str]:
    return [w for w in re.split(r"[_.-]", name.lower()) if w]


def secret_flag(name: str) -> bool:
    """Goes by the last word: --token and --api-key, not --key-dim or --max-tokens."""
    words = _split(name)
    return bool(words) and words[-1] in _WORDS and not _HARMLESS.fullmatch("_".join(words))


def secret_variable(name: str) -> bool:
    """Goes by any word, AWS_SECRET_ACCESS_KEY_ID: the environment holds no parameters."""
    words = _split(name)
    return not _WORDS.isdisjoint(words) and not _HARMLESS.fullmatch("_".join(words))


def gather(environment: dict[str, str], arguments: list[str]) -> list[str]:
    """The values to mask, longest first: one may be part of another."""
    found = [v for n, v in environment.items() if secret_variable(n)]
    for i, argument in enumerate(arguments):
        name, given, value = argument.partition("=")
        # NAME=value is how Hydra's overrides take what others take as a flag.
        if not secret_flag(name) or not argument.startswith("-") and not given:
            continue
        if given:
            found.append(value)
        elif i + 1 < len(arguments) and not arguments[i + 1].startswith("-"):
            found.append(arguments[i + 1])
    for text in (*environment.values(), *arguments):
        found += _URL_PASSWORD.findall(text)
    stripped = {v.strip() for v in found}
    long = (v for v in stripped if len(v.encode("utf-8", "surrogateescape")) >= _SHORTEST)
    return sorted(long, key=len, reverse=True)


@functools.cache
def _secrets() -> list[str]:
    """This process's. They are looked up at the first use: boot should cost nothing."""
    return gather(dict(os.environ), list(getattr(sys, "orig_argv", sys.argv)))


def mask(text: str) -> str:
    """The text with every secret replaced, and what is no character (of a file's name, say) escaped."""
    for secret in _secrets():
        if secret in text:
            text = text.replace(secret, MASK)
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _key(key: Any) -> str:
    text = str(key)
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def masked(value: Any) -> Any:
    """A JSON-able value with every string in it masked; what JSON does not know becomes text."""
    if isinstance(value, str):
        return mask(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        # Keys stay: they are the format's own words, which a secret may happen to be.
        return {_key(k): MASK if isinstance(v, str) and secret_flag(str(k)) else masked(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [masked(v) for v in value]
    return mask(str(value))
