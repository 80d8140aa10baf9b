#!/usr/bin/env python3
"""Does what a user does who has Python but neither Go nor gcc: installs the wheel and torch into a fresh environment,
runs doctor, records a script on the phantom GPU, writes a report, and makes a prediction. Prints a table.

  walk_wheel.py [--torch 2.11] WHEEL VERSION ...

VERSION is a Python version such as 3.12, searched on PATH and among pyenv's, or an interpreter's path. Each
interpreter's run has its own mount namespace, in which compilers, their headers, Go and this checkout are hidden. uv
installs torch (requirements/walk.txt) by links from its cache. Exits 1 if a run failed, and 2 if an interpreter could
not be tried."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import dpsight
import torch

device = "cuda"
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    with dpsight.phase("forward"):
        loss = model(torch.randn(64, 512, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    dpsight.step()
"""
PREDICT = """
import dpsight

prediction = dpsight.predict("train.py", device="t4")
assert prediction.fits and prediction.peak > 0 and prediction.breakdown["parameters"] > 0, prediction
print(prediction.peak)
"""
FOLDERS = ["/usr/lib/gcc", "/usr/include", "/usr/local/go", "/usr/lib/go"]  # of compilers, hidden beside their programs
COMPILERS = ("gcc", "g++", "cc", "c++", "c99", "c89", "cpp", "clang", "clang++", "tcc", "go", "zig", "as", "ld")


def hidden_programs() -> list[str]:
    """Returns the programs to hide in the usual folders: each compiler, and its variants with a version or a target in
    their names, such as x86_64-linux-gnu-gcc-12."""
    found = []
    for folder in ("/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/local/go/bin"):
        for path in sorted(Path(folder).glob("*")):
            parts = path.name.split("-")
            if path.resolve().is_file() and (path.name in COMPILERS or {"gcc", "g++", "clang"} & set(parts)):
                found.append(str(path.resolve()))
    return sorted(set(found))


def hide() -> str:
    """Returns the shell commands that hide compilers and the checkout in a mount namespace."""
    lines = ["set -e"]
    lines += [f"mount --bind /dev/null '{path}'" for path in hidden_programs()]
    lines += [f"mount -t tmpfs none '{path}'" for path in [*FOLDERS, str(ROOT)] if os.path.isdir(path)]
    for name in ("gcc", "g++", "cc", "go"):
        lines.append(f"if {name} --version >/dev/null 2>&1; then echo '{name} is not hidden' >&2; exit 1; fi")
    return "\n".join(lines)


class Failed(Exception):
    """A command of the walk failed. The text is the command's own message."""


def call(command: list[str], **options: object) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise Failed(f"{' '.join(command[-6:])}: exit {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def interpreter(name: str) -> str | None:
    """Returns the path of an interpreter that runs, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(name)]
    if not os.path.isabs(name):
        found += [shutil.which(f"python{name}"), *map(str, pyenv.glob(f"{name}.*/bin/python"))]
    works = (p for p in found if p and subprocess.run([p, "--version"], capture_output=True).returncode == 0)
    return next(works, None)


def environment(python: str, torch: str, wheel: Path, folder: Path) -> Path:
    """Makes a virtual environment with torch and the wheel."""
    venv = folder / "venv"
    uv = [sys.executable, "-m", "uv"]
    call([*uv, "venv", "--quiet", "--seed", "--python", python, str(venv)])
    requirements = str(ROOT / "requirements" / f"torch-{torch}.txt")
    call([*uv, "pip", "install", "--quiet", "--python", str(venv / "bin" / "python"), "-r", requirements])
    call([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-index", str(wheel)])
    return venv


def walk(python: str, torch: str, wheel: Path, folder: Path) -> dict[str, str]:
    """Tries one interpreter, and returns its row of the table."""
    venv = environment(python, torch, wheel, folder)
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    (work / "train.py").write_text(SCRIPT, encoding="utf-8")
    (work / "predict.py").write_text(PREDICT, encoding="utf-8")
    env = {"HOME": str(home), "PATH": f"{venv}/bin:/usr/local/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(venv)}
    hidden = folder / "hidden.sh"
    hidden.write_text(hide() + '\nexec "$@"\n', encoding="utf-8")

    def without_compilers(*command: str) -> str:
        return call(["unshare", "--map-root-user", "--mount", "sh", str(hidden), *command], env=env, cwd=work)

    def dpsight(*arguments: str) -> str:
        return without_compilers("dpsight", *arguments)

    row = {"python": call([str(venv / "bin" / "python"), "--version"]).split()[1]}
    row["dpsight"] = dpsight("--version").split()[1]
    checks = {c["name"]: c for c in json.loads(dpsight("doctor", "--format", "json"))["checks"]}
    bad = [name for name, check in checks.items() if not check["ok"] and name != "gpu"]
    if bad or "not needed" not in checks["gcc"]["detail"]:
        raise Failed(f"doctor is not content with {', '.join(bad) or 'gcc'}: {json.dumps(checks, indent=1)}")
    limits = call([sys.executable, str(ROOT / "scripts" / "measure_limits.py"), str(venv / "bin" / "python")])
    row |= dict(line.split(" (")[0].split(": ") for line in limits.splitlines())
    row["torch"] = checks["torch"]["detail"].split(",")[0]
    start = time.monotonic()
    dpsight("collect", "--device", "phantom", "--name", "first", "python", "train.py")
    row["record"] = f"{time.monotonic() - start:.0f} s"
    dpsight("report", "-o", "report")
    if not (work / "report" / "results.json").exists():
        raise Failed("report wrote no results.json")
    row["predicted peak"] = f"{int(without_compilers('python', 'predict.py')):,} bytes"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description="Walks the wheel through interpreters without Go and gcc.")
    parser.add_argument("--torch", default="2.11", help="version in requirements/torch-*.txt (2.11)")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="versions, or paths of interpreters")
    arguments = parser.parse_args()
    rows, worst = [], 0
    for python in arguments.pythons:
        path = interpreter(python)
        if not path:
            rows.append({"python": python, "failed": "not installed here"})
            worst = max(worst, 2)
            continue
        with tempfile.TemporaryDirectory(prefix="dpsight-walk-") as folder:
            try:
                rows.append(walk(path, arguments.torch, arguments.wheel.resolve(), Path(folder)))
            except Failed as error:
                print(f"{python}: {error}", file=sys.stderr)
                rows.append({"python": python, "failed": str(error).split("\n")[0][:60]})
                worst = 1
        print(" | ".join(f"{k}: {v}" for k, v in rows[-1].items()), flush=True)
    sys.exit(worst)


if __name__ == "__main__":
    main()
