#!/usr/bin/env bash
# test-cuda.sh [TAG | FILE=WORDS]…: runs torch's own tests of its CUDA memory on the phantom GPU and writes docs/test-cuda.md. test/test_cuda.py
# is fetched from GitHub at the tag (v2.11.0) and kept in the user's cache: it is torch's, and no part of this repository. Where it was had
# otherwise, as in Debian's source package of pytorch, FILE is its path and WORDS say which it is. TORCH (2.11) names the versions to run
# under, apart by spaces, each with a file in requirements.
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
    # What torch's tests import beside torch.
    packages=$cache/packages2-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ ! -e "$packages/.complete" ]; then
      "$python" -m pip install --quiet --disable-pip-version-check --target "$packages" --upgrade expecttest numpy psutil nvidia-ml-py
      touch "$packages/.complete"
    fi
    n=$((n + 1))
    PYTHONPATH=$packages go run ./scripts/onphantom "$python" scripts/test_cuda.py run "$file" "$words" "$results/$(printf %03d $n).json"
  done
done
"$python" scripts/test_cuda.py write scripts/test-cuda-reasons.txt docs/test-cuda.md "$results"/*.json
