#!/usr/bin/env bash
# test-cuda.sh [TAG]: runs torch's own tests of its CUDA memory on the phantom GPU and writes docs/test-cuda.md. test/test_cuda.py is fetched
# at the tag (v2.11.0) and kept in the user's cache: it is torch's, and no part of this repository. DPSIGHT_TEST_PYTHON names another
# interpreter than that of requirements/torch-2.11.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:-v2.11.0}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dpsight/test-cuda
file=$cache/$tag/test_cuda.py
python=${DPSIGHT_TEST_PYTHON:-$(scripts/venv.sh requirements/torch-2.11.txt)}
mkdir -p "$cache/$tag"
if [ ! -e "$file" ]; then
  curl -fsSL -o "$file.partial" "https://raw.githubusercontent.com/pytorch/pytorch/$tag/test/test_cuda.py"
  mv "$file.partial" "$file"
fi
# What torch's tests import beside torch.
packages=$cache/packages-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ ! -e "$packages/.complete" ]; then
  "$python" -m pip install --quiet --disable-pip-version-check --target "$packages" --upgrade expecttest numpy psutil
  touch "$packages/.complete"
fi
PYTHONPATH=$packages TEST_CUDA_TAG=$tag go run ./scripts/onphantom "$python" scripts/test_cuda.py "$file" scripts/test-cuda-reasons.txt docs/test-cuda.md
