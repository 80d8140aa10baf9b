#!/usr/bin/env python3
"""Builds dpsight's wheels, each with the program for one platform, and its source distribution. The same program and
modules always give the same wheel, byte for byte.

  wheels.py [-o DIST] [PLATFORM ...]    all platforms by default, with ziglang as the C compiler for Linux

The program for Linux on x86-64 contains the phantom GPU, compiled for the versions of torch that it is tested with. The
phantom GPU is compiled with gcc and linked by ziglang.

wheels.py is also the build backend of pyproject.toml. As a backend it builds the wheel for the present machine, and
needs only Go."""

from __future__ import annotations

import argparse
import base64
import csv
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "collect" / "agent" / "python" / "dpsight"
# Go's names of each platform, and zig's names where the program needs C, since it loads NVML by dlopen.
PLATFORMS = {
    "manylinux_2_28_x86_64": ("linux", "amd64", "x86_64-linux-gnu.2.28"),
    "manylinux_2_28_aarch64": ("linux", "arm64", "aarch64-linux-gnu.2.28"),
    "macosx_12_0_x86_64": ("darwin", "amd64", None),
    "macosx_12_0_arm64": ("darwin", "arm64", None),
    "win_amd64": ("windows", "amd64", None),
}
PHANTOM = "manylinux_2_28_x86_64"  # the platform that the phantom GPU runs on
TORCH = ("2.11", "2.15")  # torch versions that the phantom GPU is tested with (requirements/torch-*.txt)
MOST_BYTES = 25 << 20  # limit for one wheel
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store


def version() -> str:
    """Returns the release, which the program's sources name."""
    source = (ROOT / "cmd" / "dpsight" / "version.go").read_text(encoding="utf-8")
    return re.search(r'^const version = "(.+)"$', source, re.MULTILINE).group(1)


def metadata() -> str:
    lines = [
        "Metadata-Version: 2.4",
        "Name: dpsight",
        f"Version: {version()}",
        "Summary: GPU memory and time of (differentially private) PyTorch training, by owner, to the byte",
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "Requires-Python: >=3.10",
        "Provides-Extra: tables",
        'Requires-Dist: pyarrow; extra == "tables"',
        "Classifier: Operating System :: MacOS",
        "Classifier: Operating System :: Microsoft :: Windows",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (ROOT / "README.md").read_text(encoding="utf-8")


def revision() -> str:
    """Returns the commit of this checkout, with +modified behind it if files differ from the commit, or "" if the
    commit is unknown."""
    recorded = ROOT / "REVISION"  # only a source distribution has this file
    if recorded.exists():
        return recorded.read_text(encoding="utf-8").strip()
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return ""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    status = ["git", "status", "--porcelain", "--untracked-files=no"]
    changed = subprocess.run(status, cwd=ROOT, capture_output=True, text=True)
    if head.returncode or changed.returncode:
        return ""
    return head.stdout.strip() + ("+modified" if changed.stdout else "")


# The program


def build(platform: str, out: Path) -> None:
    """Compiles the program. Where it needs C, the program finds NVML at run time."""
    goos, goarch, target = PLATFORMS[platform]
    env = os.environ | {"GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "1" if target else "0"}
    with tempfile.TemporaryDirectory() as work:
        flags = []
        if target:
            stub = nvml_stub(target, Path(work))
            env["CC"] = f"'{sys.executable}' '{Path(__file__).resolve()}' --cc {target} '{stub}'"
        if platform == PHANTOM:
            flags.append(f"-overlay={prebuild(target, Path(work))}")
        go_build(env, out, flags)
    if target:
        drop_needed(out, NVML)


def go_build(env: dict[str, str], out: Path, flags: list[str]) -> None:
    linker = f"-s -w -X github.com/dpsight/dpsight/collect.revision={revision()}"
    command = ["go", "build", "-trimpath", "-buildvcs=false", f"-ldflags={linker}", *flags]
    subprocess.run([*command, "-o", str(out), "./cmd/dpsight"], cwd=ROOT, env=env, check=True)


# go-nvml leaves NVML's functions undefined: the loader finds them once the library has been opened. zig's linker
# refuses undefined functions. So this file links a library that defines them, and then removes it from the libraries
# that the program loads. glibc's loader binds a function at its first call.
NVML = "libnvidia-ml.so.1"


def nvml_stub(target: str, folder: Path) -> Path:
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml"]
    module = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    header = (Path(module) / "pkg" / "nvml" / "nvml.h").read_text(encoding="utf-8")
    source = folder / "nvml.c"
    names = sorted(set(re.findall(r"\b(nvml[A-Z]\w+)\s*\(", header)))
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in names), encoding="utf-8")
    out = folder / NVML
    subprocess.run([*zig(target), "-shared", "-w", f"-Wl,-soname,{NVML}", "-o", out, source], check=True)
    return out


def zig(target: str) -> list[str]:
    import ziglang

    return [os.path.join(os.path.dirname(ziglang.__file__), "zig"), "cc", "-target", target]


def compile_c(target: str, stub: str, arguments: list[str]) -> int:
    """Runs the C compiler for Go, and returns its exit code."""
    out = []
    for argument in arguments:
        unresolved = argument.startswith("-Wl,--unresolved-symbols=")
        out += [stub, "-Wl,-z,lazy"] if unresolved else [argument]
    return subprocess.call([*zig(target), *out])


def drop_needed(path: Path, library: str) -> None:
    """Removes a library from the list of libraries that a 64-bit ELF file makes the loader load."""
    data = bytearray(path.read_bytes())
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, headers + i * size) for i in range(count)]
    _, _, dynamic, _, _, length = next(s for s in segments if s[0] == 2)  # PT_DYNAMIC
    entries = [struct.unpack_from("<QQ", data, dynamic + i) for i in range(0, length, 16)]
    strings = next(value for tag, value in entries if tag == 5)  # DT_STRTAB, an address
    offset = next(s[2] + strings - s[3] for s in segments if s[0] == 1 and s[3] <= strings < s[3] + s[5])  # PT_LOAD
    wanted = library.encode() + b"\0"
    kept = [e for e in entries if e[0] != 1 or not data.startswith(wanted, offset + e[1])]  # DT_NEEDED
    if len(kept) != len(entries) - 1:
        raise SystemExit(f"{path.name} does not need {library} once")
    data[dynamic : dynamic + length] = b"".join(struct.pack("<QQ", *e) for e in [*kept, (0, 0)])
    path.write_bytes(data)


# The phantom GPU


def prebuild(target: str, work: Path) -> Path:
    """Compiles the phantom GPU for each version of torch. Returns an overlay file with which go build embeds the
    results."""
    laid = {}
    for compiler in COMPILERS:
        wrapper = work / compiler
        command = f"'{sys.executable}' '{Path(__file__).resolve()}' --phantom-cc {target} {compiler}"
        wrapper.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        wrapper.chmod(0o755)
    for version in TORCH:
        venv = ["scripts/venv.sh", f"requirements/torch-{version}.txt"]
        python = subprocess.run(venv, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        command = ["go", "run", "./scripts/prebuild", *(str(work / c) for c in COMPILERS), python, str(work)]
        archive = Path(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
        audit_libraries(archive)
        laid[str(ROOT / "collect" / "phantom" / "prebuilt" / archive.name)] = str(archive)
    overlay = work / "overlay.json"
    overlay.write_text(json.dumps({"Replace": laid}), encoding="utf-8")
    return overlay


COMPILERS = ("gcc", "g++")

# Defines, by means of an older glibc and libstdc++, two symbols that newer headers need: the flag for a single thread
# (there may be several), and the text of a string stream, which C++20 names differently.
OLDER = """
char __libc_single_threaded __attribute__((visibility("hidden"))) = 0;
__asm__(
    ".globl {new}\\n"
    ".hidden {new}\\n"
    "{new}: jmp {old}@PLT\\n"
);
""".format(
    new="_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv",
    old="_ZNKSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv",
)


def compile_phantom(target: str, compiler: str, arguments: list[str]) -> int:
    """Compiles the phantom GPU with the usual compiler, so that the wheel has the code that the tests test. zig links
    it, since zig knows which functions an older glibc has."""
    if "-shared" not in arguments:
        return subprocess.call([compiler, *arguments])
    out = arguments[arguments.index("-o") + 1]
    rest = [a for a in arguments if a not in ("-shared", "-o", out)]
    sources = [a for a in rest if a.endswith((".c", ".cpp"))]
    link = [a for a in rest if a.startswith(("-l", "-L", "-Wl,")) or a.endswith(".o")]
    flags = [a for a in rest if a not in sources and a not in link]
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for i, source in enumerate(sources):
            objects.append(f"{folder}/{i}.o")
            subprocess.run([compiler, *flags, "-c", source, "-o", objects[-1]], check=True)
        if compiler == "g++":
            older = Path(folder) / "older.c"
            older.write_text(OLDER, encoding="utf-8")
            objects.append(f"{folder}/older.o")
            subprocess.run(["gcc", "-fPIC", "-c", str(older), "-o", objects[-1]], check=True)
            for library in ("libstdc++.so", "libgcc_s.so.1"):
                where = [compiler, f"-print-file-name={library}"]
                link.append(subprocess.run(where, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
        return subprocess.call([*zig(target), "-shared", "-Wl,--strip-debug", "-o", out, *objects, *link])


# The newest symbol versions that manylinux_2_28 allows.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}


def audit_libraries(archive: Path) -> None:
    """Fails if a library in an archive needs a newer glibc or libstdc++ than the wheel's name says."""
    from elftools.elf.elffile import ELFFile

    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if ".so" not in name:
                continue
            needs = ELFFile(io.BytesIO(packed.read(name))).get_section_by_name(".gnu.version_r")
            for _, versions in needs.iter_versions():
                for version in versions:
                    family, _, number = version.name.partition("_")
                    if tuple(map(int, number.split("."))) > NEWEST[family]:
                        raise SystemExit(f"{name} in {archive.name} needs {version.name}")


# The archives


def sources() -> list[str]:
    """Returns the files of the source distribution: the sources of the program and of the package."""
    if not (ROOT / ".git").exists():
        return sorted(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file() and p.suffix != ".pyc")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    folders = ("analyze/", "cmd/", "collect/", "ingest/", "live/", "report/", "schemas/")
    files = {"go.mod", "go.sum", "LICENSE", "README.md", "pyproject.toml", "scripts/wheels.py"}
    return sorted(
        name
        for name in names.split("\0")
        if name in files
        or name.startswith(folders)
        and "/testdata/" not in name
        and "/tests/" not in name
        and not name.endswith("_test.go")
    )


# An interpreter with the package runs this line as it starts. The line does nothing unless DPSIGHT_ATTACH is 1.
PTH = 'import os; os.environ.get("DPSIGHT_ATTACH") == "1" and __import__("dpsight.flight.boot")\n'


def write_wheel(program: Path, platform: str, folder: Path) -> Path:
    """Writes a wheel with the Python package and a program."""
    name = f"dpsight-{version()}"
    tag = f"py3-none-{platform}"
    wheel = f"Wheel-Version: 1.0\nGenerator: dpsight\nRoot-Is-Purelib: false\nTag: {tag}\n"
    script = "dpsight.exe" if platform.startswith("win") else "dpsight"
    files = {
        f"dpsight/{path.relative_to(PACKAGE).as_posix()}": (path.read_bytes(), 0o644)
        for path in sorted(PACKAGE.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    files |= {
        "dpsight_attach.pth": (PTH.encode(), 0o644),
        f"{name}.data/scripts/{script}": (program.read_bytes(), 0o755),
        f"{name}.dist-info/METADATA": (metadata().encode(), 0o644),
        f"{name}.dist-info/WHEEL": (wheel.encode(), 0o644),
        f"{name}.dist-info/licenses/LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644),
    }
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for path, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(data)])
    rows.writerow([f"{name}.dist-info/RECORD", "", ""])
    files[f"{name}.dist-info/RECORD"] = (record.getvalue().encode(), 0o644)
    out = folder / f"{name}-{tag}.whl"
    partial = out.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, (data, mode) in files.items():
            info = zipfile.ZipInfo(path, EPOCH)
            info.create_system = 3  # Unix, so that the file mode counts
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    partial.replace(out)
    return out


def write_sdist(folder: Path) -> Path:
    name = f"dpsight-{version()}"
    files = {path: (ROOT / path).read_bytes() for path in sources()}
    files["PKG-INFO"] = metadata().encode()
    files["REVISION"] = f"{revision()}\n".encode()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items()):
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size, info.mode = len(data), 0o755 if path == "scripts/wheels.py" else 0o644
            archive.addfile(info, io.BytesIO(data))
    out = folder / f"{name}.tar.gz"
    partial = out.with_suffix(".partial")
    partial.write_bytes(gzip.compress(content.getvalue(), mtime=0))
    partial.replace(out)
    return out


def audit(wheel: Path, platform: str) -> None:
    """Fails if a wheel needs a newer glibc than its name says, or a library that some Linux systems lack."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    said = " ".join(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    found = re.search(r'following platform tag: "manylinux_2_(\d+)_(\w+)"', said)
    _, _, minor, machine = platform.split("_", 3)
    if not found or int(found[1]) > int(minor) or found[2] != machine:
        raise SystemExit(f"{wheel} is no wheel for {platform}: {said}")


# Functions that pip calls (PEP 517)


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    with tempfile.TemporaryDirectory() as work:
        program = Path(work) / "dpsight"
        go_build(dict(os.environ), program, [])
        return write_wheel(program, platform, Path(wheel_directory)).name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    return write_sdist(Path(sdist_directory)).name


def main() -> None:
    if sys.argv[1:2] == ["--cc"]:
        sys.exit(compile_c(sys.argv[2], sys.argv[3], sys.argv[4:]))
    if sys.argv[1:2] == ["--phantom-cc"]:
        sys.exit(compile_phantom(sys.argv[2], sys.argv[3], sys.argv[4:]))
    parser = argparse.ArgumentParser(description="Builds dpsight's wheels and its source distribution.")
    parser.add_argument("-o", type=Path, default=ROOT / "dist", dest="out", help="folder of the files (dist)")
    parser.add_argument("--audit", action="store_true", help="check the Linux wheels with auditwheel")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=f"any of {', '.join(PLATFORMS)} (all)")
    arguments = parser.parse_args()
    unknown = set(arguments.platforms) - set(PLATFORMS)
    if unknown:
        parser.error(f"no platform {', '.join(sorted(unknown))}: there are {', '.join(PLATFORMS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(write_sdist(arguments.out))
    for platform in arguments.platforms or PLATFORMS:
        with tempfile.TemporaryDirectory() as work:
            program = Path(work) / "dpsight"
            build(platform, program)
            wheel = write_wheel(program, platform, arguments.out)
        if wheel.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{wheel} has {wheel.stat().st_size} bytes, over {MOST_BYTES}")
        if arguments.audit and platform.startswith("manylinux"):
            audit(wheel, platform)
        print(wheel, flush=True)


if __name__ == "__main__":
    main()
