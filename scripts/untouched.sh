#!/usr/bin/env bash
# untouched.sh: checks that a prediction leaves this machine's GPUs alone, however many there are. Predicts a built-in
# experiment and a script. Ten times a second it reads the memory in use and the processes that NVML knows, and the
# device files under /dev that the prediction's processes hold open. Prints the lowest and highest memory of each GPU.
# Exits with 1 if anything changed, or if nothing could be read. DPSIGHT names the binary, PYTHON an interpreter with
# torch and Opacus.
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
# A process that held a device file before the prediction began does not belong to it: it is a persistence daemon, or
# software that lends the machine.
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
# Each GPU must have one value of used memory throughout.
[ "$looks" -ge 20 ] && [ "$(sort -u "$temp/used" | wc -l)" = "$(cut -d, -f1 "$temp/used" | sort -u | wc -l)" ] &&
  [ ! -s "$temp/apps" ] && [ ! -s "$temp/open" ] || status=1
exit $status
