"""Keeps secrets out of everything the agent writes: values given in the environment or on the command line under a
name that looks like one."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

_NAME = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)
# Shorter values would turn up everywhere: masking "true" or "1" protects nobody and ruins the text.
_SHORTEST = 6
MASK = "***"


def gather(environment: dict[str, str], arguments: list[str]) -> list[str]:
    """The values to mask, longest first: one may be part of another."""
    found = {v for n, v in environment.items() if _NAME.search(n)}
    for i, argument in enumerate(arguments):
        if not argument.startswith("-") and "=" not in argument:
            continue
        name, given, value = argument.partition("=")
        if not _NAME.search(name):
            continue
        if given:
            found.add(value)
        elif i + 1 < len(arguments):
            found.add(arguments[i + 1])
    return sorted((v for v in found if len(v) >= _SHORTEST), key=len, reverse=True)


_secrets: list[str] | None = None


def mask(text: str) -> str:
    """The text with every secret replaced. Secrets are looked up at the first use: boot should cost nothing."""
    global _secrets
    if _secrets is None:
        _secrets = gather(dict(os.environ), list(getattr(sys, "orig_argv", sys.argv)))
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, MASK)
    return text


def masked(value: Any) -> Any:
    """A JSON-able value with every string in it masked; what JSON does not know becomes text."""
    if isinstance(value, str):
        return mask(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        return {
            mask(str(k)): MASK if _NAME.search(str(k)) and isinstance(v, str) else masked(v) for k, v in value.items()
        }
    if isinstance(value, (list, tuple, set)):
        return [masked(v) for v in value]
    return mask(str(value))
