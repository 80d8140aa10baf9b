#!/usr/bin/env bash
# measure-instrument.sh OUT [PART...]: measures the cost of recording on a machine with a GPU. Without PART it measures
# all parts except launch. The parts:
#   steps times a script of 3,000 steps of about 10 ms, whose pace the host sets. The script runs without dpsight, as a
#   bare run, and recorded with the defaults, in turns. The table shows the cost of a bare step, the run's extra wall
#   time, and the share of drains.
#   busy does the same with steps for which the device takes about 10 ms.
#   headline does the same with the headline model, which needs 80 GiB, and with few steps.
#   events shows whether thousands of CUDA events take device memory.
#   launch measures the CPU time of bare, recorded and instrumented steps that take no time on the device. It runs on
#   the phantom GPU and needs no GPU.
# The script prints a table for each part and writes it to OUT/PART.txt. TURNS is the number of turns (default: two).
# DPSIGHT names the program, PYTHON an interpreter with torch 2.10 or later.
set -euo pipefail
out=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
export DPSIGHT_PYTHON=${PYTHON:-$(command -v python3)}
mkdir -p "$out"
[ $# -gt 0 ] || set -- steps busy headline events
status=0
for part in "$@"; do
  echo "== $part"
  script=measure_instrument.py
  [ "$part" != launch ] || script=measure_launch.py
  "$DPSIGHT_PYTHON" "$here/$script" "$part" --turns "${TURNS:-0}" \
    --dpsight "${DPSIGHT:-./dpsight}" --store "$out/$part" | tee "$out/$part.txt" || status=1
done
exit $status
