"""Finds and runs the program dpsight, which the wheel installs beside the interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import NoReturn

NAME = "dpsight.exe" if os.name == "nt" else "dpsight"


def find() -> str:
    """Finds the program that was installed with this package. A checkout has none, and uses the program on PATH."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        os.path.join(os.path.dirname(package), "bin"),  # after pip install --target
    ]
    for folder in folders:
        path = os.path.join(folder, NAME)
        if os.path.isfile(path):
            return path
    path = shutil.which(NAME) or ""
    if not path:
        raise FileNotFoundError(f"the program {NAME} is neither in {folders[0]} nor on PATH: install dpsight's wheel")
    return path


def environment() -> dict[str, str]:
    """The environment for the program, so that it runs Python scripts with this interpreter."""
    return {"DPSIGHT_PYTHON": sys.executable, **os.environ}


def run() -> NoReturn:
    """Replaces this process by the program, with the same arguments."""
    try:
        path = find()
    except FileNotFoundError as error:
        sys.exit(f"dpsight: {error}")
    if os.name == "nt":  # on Windows, exec would return the prompt at once
        sys.exit(subprocess.call([path, *sys.argv[1:]], env=environment()))
    os.execve(path, [path, *sys.argv[1:]], environment())
