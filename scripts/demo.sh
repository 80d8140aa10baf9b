#!/usr/bin/env bash
# demo.sh runs dpsight demo on this machine. If this machine can use neither a GPU nor the phantom GPU, or cannot make
# the Python environment, demo.sh writes a report on the recorded example instead.
set -euo pipefail
out=runs/demo-report
if [ "$(uname -sm)" != "Linux x86_64" ] && ! command -v nvidia-smi >/dev/null; then
  echo "demo: recording needs Linux x86-64; here is the recorded example instead" >&2
elif ! make --no-print-directory -o build setup; then # make demo has already built dpsight
  echo "demo: make setup failed, so nothing can be recorded; here is the recorded example instead" >&2
else
  status=0
  ./dpsight demo --store runs -o "$out" || status=$?
  if [ "$status" != 2 ]; then
    exit "$status"
  fi
  echo "demo: this machine cannot record; here is the recorded example instead" >&2
fi
./dpsight report examples/headline --quiet -o "$out"
