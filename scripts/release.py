#!/usr/bin/env python3
"""Makes the files of a release and publishes them: wheels, the source distribution, the program for each platform,
a software bill of materials (CycloneDX) for each, and SHA256SUMS.

  release.py [--dry-run] [-o DIST] TAG [PLATFORM ...]    runs under the interpreter of requirements/wheels.txt

With --dry-run nothing is published, the tag need not exist, and the commands that would publish are printed.
Only then can platforms be left out."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import wheels

SBOM = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
IMAGE = "ghcr.io/dpsight/dpsight"


def disagreements(tag: str) -> list[str]:
    """Returns where a version differs from the version in the program's sources."""
    version = wheels.version()
    cited = re.search(r"^version: (.+)$", (wheels.ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    said = [("the tag", tag, f"v{version}"), ("CITATION.cff", cited and cited[1], version)]
    return [f"{what} says {it}, and by cmd/dpsight/version.go it is {own}" for what, it, own in said if it != own]


def unlike_tag(tag: str) -> str | None:
    """Returns why the checkout is not the commit of the tag, or None if it is."""
    here = wheels.revision()
    if here.endswith("+modified"):
        return "files differ from the commit"
    command = ["git", "rev-parse", "--verify", "--quiet", f"{tag}^{{commit}}"]
    commit = subprocess.run(command, cwd=wheels.ROOT, capture_output=True, text=True).stdout.strip()
    return None if commit == here else f"the checkout is at {here}, the tag at {commit or 'none'}"


def pack_program(wheel: Path) -> Path:
    """Makes an archive of the program and the license from a wheel, so that wheel and archive have the same program.
    Also lists the materials of the program."""
    platform = wheel.stem.split("-", 4)[4]
    goos, goarch, _ = wheels.PLATFORMS[platform]
    name = f"dpsight-{wheels.version()}-{goos}-{goarch}"
    script = "dpsight.exe" if goos == "windows" else "dpsight"
    with zipfile.ZipFile(wheel) as archive:
        program = archive.read(f"dpsight-{wheels.version()}.data/scripts/{script}")
    files = {script: (program, 0o755), "LICENSE": ((wheels.ROOT / "LICENSE").read_bytes(), 0o644)}
    content = io.BytesIO()
    if goos == "windows":
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, (data, _) in files.items():
                archive.writestr(zipfile.ZipInfo(f"{name}/{path}", wheels.EPOCH), data, zipfile.ZIP_DEFLATED)
        out = wheel.with_name(f"{name}.zip")
        out.write_bytes(content.getvalue())
    else:
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, (data, mode) in files.items():
                info = tarfile.TarInfo(f"{name}/{path}")
                info.size, info.mode = len(data), mode
                archive.addfile(info, io.BytesIO(data))
        out = wheel.with_name(f"{name}.tar.gz")
        out.write_bytes(gzip.compress(content.getvalue(), mtime=0))
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / script
        binary.write_bytes(program)
        list_materials(binary, wheel.with_name(f"{name}.cdx.json"))
    return out


def list_materials(binary: Path, out: Path) -> None:
    """Writes the software bill of materials of a program, from its own build information."""
    options = ["-json", "-std", "-version", f"v{wheels.version()}", "-output", str(out)]
    subprocess.run(["go", "run", SBOM, "bin", *options, str(binary)], cwd=wheels.ROOT, check=True, capture_output=True)


def sum_up(folder: Path) -> None:
    """Writes SHA256SUMS, in the form that sha256sum --check reads."""
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def publishing(tag: str, folder: Path) -> list[list[str]]:
    """Returns the commands that publish a release. The commands that cannot be undone come last."""
    version = wheels.version()
    image = f"{IMAGE}:{version}"
    packages = [*sorted(folder.glob("*.whl")), folder / f"dpsight-{version}.tar.gz"]
    title = ["--verify-tag", "--title", f"dpsight {version}", "--generate-notes"]
    return [
        ["docker", "build", "--file", str(wheels.ROOT / "Containerfile"), "--tag", image, str(folder)],
        ["docker", "push", image],
        ["gh", "release", "create", tag, *title, *(str(p) for p in sorted(folder.iterdir()))],
        ["uv", "publish", *map(str, packages)],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the files of a release, and publishes them.")
    parser.add_argument("tag", help="tag of the release, such as v0.1.0")
    parser.add_argument("--dry-run", action="store_true", help="publish nothing")
    parser.add_argument("-o", type=Path, default=wheels.ROOT / "dist", dest="out", help="folder of the files (dist)")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=f"any of {', '.join(wheels.PLATFORMS)} (all)")
    arguments = parser.parse_args()
    if arguments.platforms and not arguments.dry_run:
        parser.error("a release has all platforms")
    wrong = disagreements(arguments.tag)
    if not arguments.dry_run and (unlike := unlike_tag(arguments.tag)):
        wrong.append(unlike)
    if arguments.out.exists() and any(arguments.out.iterdir()):
        wrong.append(f"{arguments.out} has files already: a release is made in an empty folder")
    if wrong:
        sys.exit("release.py: " + "; ".join(wrong))
    command = [sys.executable, str(wheels.ROOT / "scripts" / "wheels.py"), "--audit", "-o", str(arguments.out)]
    subprocess.run([*command, *arguments.platforms], check=True)
    for wheel in sorted(arguments.out.glob("*.whl")):
        print(pack_program(wheel), flush=True)
    sum_up(arguments.out)
    for file in sorted(arguments.out.iterdir()):
        print(f"{file.stat().st_size:>12,}  {file.name}")
    for command in publishing(arguments.tag, arguments.out):
        print(shlex.join(command), flush=True)
        if not arguments.dry_run:
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
