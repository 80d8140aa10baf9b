#!/usr/bin/env bash
# untouched.sh checks that a prediction does not use this machine's GPUs, however many there are. It predicts a built-in
# experiment and a script. Ten times a second it reads the memory in use and the processes from NVML, and the device
# files under /dev that processes hold open. It prints the lowest and highest memory in use of each GPU. It exits with 1
# if the memory changed, if NVML knew a process, if a process of the prediction opened a device file, or if it could
# read fewer than 20 times. DPSIGHT names the program, PYTHON an interpreter with torch and Opacus.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export DPSIGHT_PYTHON=${PYTHON:-$(command -v python3)}
dpsight=${DPSIGHT:-$here/dpsight}
query="nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits"

# holders lists the processes that hold a GPU's device file open, and the file.
holders() {
  find /proc/[0-9]*/fd -lname '/dev/nvidia*' -printf '%h %l\n' 2>/dev/null |
    sed 's|^/proc/\([0-9]*\)/fd|\1|' | grep -v "^$$ " || true
}

touch "$temp/apps" "$temp/open"
# A process that held a device file open before the prediction began does not belong to the prediction. It is, for
# example, NVIDIA's persistence daemon.
holders | cut -d' ' -f1 | sort -u >"$temp/before"
$query >"$temp/used"
nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader
"$dpsight" predict --store "$temp/a" --method ghost --preset small >"$temp/out" 2>&1 &&
  "$dpsight" predict --store "$temp/b" -- "$DPSIGHT_PYTHON" \
    "$here/examples/accuracy/development/gpt.py" >>"$temp/out" 2>&1 &
pid=$!
looks=0
while kill -0 "$pid" 2>/dev/null; do
  $query >>"$temp/used"
  nvidia-smi --query-compute-apps=pid --format=csv,noheader >>"$temp/apps"
  holders | while read -r p what; do
    grep -qx "$p" "$temp/before" || grep -qa nvidia-smi "/proc/$p/cmdline" 2>/dev/null || [ ! -e "/proc/$p" ] ||
      echo "$what $(tr '\0' ' ' <"/proc/$p/cmdline" | cut -c1-80)"
  done >>"$temp/open" || true
  looks=$((looks + 1))
  sleep 0.1
done
status=0
wait "$pid" || status=1
grep -E 'peak|fits|confidence' "$temp/out" || tail -5 "$temp/out"
echo "looks: $looks"
sort -u "$temp/used" | awk -F', *' '
  { if (!($1 in low) || $2 + 0 < low[$1]) low[$1] = $2 + 0; if ($2 + 0 > high[$1]) high[$1] = $2 + 0 }
  END { for (gpu in low) print "MiB used on GPU " gpu ": " low[gpu] " to " high[gpu] + 0 }' | sort
echo "processes that NVML knows: $(sort -u "$temp/apps" | grep -c . || true)"
echo "device files held open: $(sort -u "$temp/open" | grep -c . || true)"
sort "$temp/open" | uniq -c | head
# The memory in use of each GPU must have the same value in all readings.
[ "$looks" -ge 20 ] && [ "$(sort -u "$temp/used" | wc -l)" = "$(cut -d, -f1 "$temp/used" | sort -u | wc -l)" ] &&
  [ ! -s "$temp/apps" ] && [ ! -s "$temp/open" ] || status=1
exit $status
