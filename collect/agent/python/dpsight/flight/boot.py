"""For DPSIGHT_ATTACH=1, the installed package's .pth file imports this module when an interpreter starts. The module
waits for torch and loads little before, since most processes never import torch."""

from __future__ import annotations

import os
import sys
from typing import Any

from dpsight.flight.waiting import waiting


def _torch_imported(_torch: Any) -> None:
    """Begins to record. An error here must not end a program that was not changed for dpsight."""
    from dpsight.api import attach_by_environment

    try:
        attach_by_environment()
    except Exception as error:
        sys.stderr.write(f"dpsight: the agent does not record this process: {error}\n")


def boot() -> None:
    """Waits for torch, unless dpsight's launcher already records this process."""
    if os.environ.get("DPSIGHT_SPOOL"):
        return
    if "torch" in sys.modules:  # another .pth file has already imported it
        _torch_imported(sys.modules["torch"])
    else:
        waiting.callbacks["torch"] = _torch_imported
        waiting.install()


boot()
