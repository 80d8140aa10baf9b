#!/usr/bin/env bash
# untouched.sh: does a prediction leave this machine's GPU alone? Predicts a built-in experiment and a script, and looks ten times a
# second at the memory that NVML says is used, at the processes it knows, and at what the prediction's processes hold open under /dev.
# Prints the lowest and the highest of each; exit code 1 if anything moved. DPSIGHT names the binary, PYTHON an interpreter with torch and Opacus.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export DPSIGHT_PYTHON=${PYTHON:-$(command -v python3)}
dpsight=${DPSIGHT:-$here/dpsight}
query="nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits"

$query >"$temp/used"
"$dpsight" predict --store "$temp/a" --method ghost --preset small >"$temp/out" 2>&1 &&
  "$dpsight" predict --store "$temp/b" -- "$DPSIGHT_PYTHON" "$here/examples/accuracy/first/gpt.py" >>"$temp/out" 2>&1 &
pid=$!
looks=0
while kill -0 "$pid" 2>/dev/null; do
  $query >>"$temp/used"
  nvidia-smi --query-compute-apps=pid --format=csv,noheader >>"$temp/apps"
  # The session of the prediction is this script's: no other process of it touches a device.
  find /proc/[0-9]*/fd -lname '/dev/nvidia*' -printf '%h %l\n' 2>/dev/null | grep -v "^/proc/$$/" | while read -r where what; do
    p=${where#/proc/} p=${p%/fd}
    grep -qa nvidia-smi "/proc/$p/cmdline" 2>/dev/null || [ ! -e "/proc/$p" ] || echo "$what $(tr '\0' ' ' <"/proc/$p/cmdline" | cut -c1-80)"
  done >>"$temp/open" || true
  looks=$((looks + 1))
  sleep 0.1
done
status=0
wait "$pid" || status=1
grep -E 'peak|fits|confidence' "$temp/out" || tail -5 "$temp/out"
echo "looks: $looks"
echo "MiB used on the GPU: $(sort -n "$temp/used" | head -1) to $(sort -n "$temp/used" | tail -1)"
echo "processes that NVML knows: $(sort -u "$temp/apps" | grep -c . || true)"
echo "device files held open: $(sort -u "$temp/open" | grep -c . || true)"
sort "$temp/open" | uniq -c | head
[ "$(sort -u "$temp/used" | wc -l)" = 1 ] && [ ! -s "$temp/apps" ] && [ ! -s "$temp/open" ] || status=1
exit $status
