#!/usr/bin/env bash
# test-cuda.sh [TAG | FILE=WORDS]…: runs torch's own tests of its CUDA memory on the phantom GPU and writes
# docs/test-cuda.md. It fetches test/test_cuda.py from torch's repository on GitHub at the tag (default: v2.11.0), and
# keeps the file in the user's cache. The file belongs to torch and is not part of this repository. FILE=WORDS gives a
# copy from elsewhere, such as Debian's source package of pytorch. FILE is the copy's path. WORDS describe the copy by a
# title, then sentences if needed. TORCH lists the versions of torch to run under, separated by spaces (default: 2.11).
# Each version has a file in requirements.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dpsight/test-cuda
mkdir -p "$cache"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
n=0
for what in "${@:-v2.11.0}"; do
  file=${what%%=*} words=${what#*=}
  if [ "$file" = "$what" ]; then
    file=$cache/$what/test_cuda.py words="the file at the tag $what"
    if [ ! -e "$file" ]; then
      mkdir -p "$cache/$what"
      curl -fsSL -o "$file.partial" "https://raw.githubusercontent.com/pytorch/pytorch/$what/test/test_cuda.py"
      mv "$file.partial" "$file"
    fi
  fi
  for version in ${TORCH:-2.11}; do
    python=$(scripts/venv.sh "requirements/torch-$version.txt")
    # torch's tests import these packages beside torch. ninja compiles the extensions that the tests build.
    packages=$cache/packages3-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ ! -e "$packages/.complete" ]; then
      "$python" -m pip install --quiet --disable-pip-version-check --target "$packages" --upgrade \
        expecttest ninja numpy psutil nvidia-ml-py
      touch "$packages/.complete"
    fi
    # Some tests compile an allocator in C++ and need the CUDA headers in one folder. torch's own packages have most of
    # these headers. For CUDA 13, pip installs the other headers. With CUDA 12 the tests that need these headers fail.
    toolkit=$cache/toolkit-$version cuda=$("$python" -c 'import torch; print(torch.version.cuda)')
    if [ ! -e "$toolkit/.complete" ] && [ "${cuda%%.*}" = 13 ]; then
      rm -rf "$toolkit"
      "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$toolkit/packages" \
        "nvidia-cuda-crt==$cuda.*" "nvidia-cuda-cccl==$cuda.*"
      of_torch=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib") + "/nvidia/cu13")')
      mkdir -p "$toolkit/home/include" "$toolkit/home/lib64"
      ln -s "$of_torch"/include/* "$toolkit/home/include"
      ln -sf "$toolkit"/packages/nvidia/cu13/include/* "$toolkit/home/include"
      ln -s "$of_torch/lib/libcudart.so.13" "$toolkit/home/lib64/libcudart.so"
      touch "$toolkit/.complete"
    fi
    n=$((n + 1))
    home=()
    [ ! -e "$toolkit/.complete" ] || home=("CUDA_HOME=$toolkit/home")
    env "${home[@]}" PATH="$packages/bin:$PATH" PYTHONPATH="$packages" TORCH_EXTENSIONS_DIR="$toolkit/extensions" \
      go run ./scripts/onphantom "$python" scripts/test_cuda.py run "$file" "$words" "$results/$(printf %03d $n).json"
  done
done
"$python" scripts/test_cuda.py write scripts/test-cuda-reasons.txt docs/test-cuda.md "$results"/*.json
