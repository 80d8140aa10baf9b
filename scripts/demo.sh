#!/usr/bin/env bash
# demo.sh: the quick suite on this machine, and a report on it. Where neither a GPU nor the phantom GPU is possible, or
# the Python environment cannot be made, a report on the recorded example.
set -euo pipefail
out=runs/demo-report
if [ "$(uname -sm)" != "Linux x86_64" ] && ! command -v nvidia-smi >/dev/null; then
  echo "demo: recording needs Linux x86-64; here is the recorded example instead" >&2
elif ! make --no-print-directory setup; then
  echo "demo: make setup failed, so nothing can be recorded; here is the recorded example instead" >&2
else
  status=0
  ./dpsight collect --suite quick --quiet --store runs --report "$out" || status=$?
  if [ "$status" != 2 ]; then
    exit "$status"
  fi
  echo "demo: this machine cannot record; here is the recorded example instead" >&2
fi
./dpsight report examples/headline --quiet -o "$out"
