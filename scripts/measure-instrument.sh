#!/usr/bin/env bash
# measure-instrument.sh OUT [PART...]: what the instrument costs, measured on a machine with a GPU. The parts (default:
# all but launch):
#   steps      a script of three thousand steps of about 10 ms, which the host takes to launch, block by block without
#              dpsight, bare, and recorded as by default: what a bare step and a run's wall time cost, and the share of
#              drains
#   busy       the same of steps that the device takes 10 ms for
#   headline   the headline model (needs 80 GiB), the same, with few steps
#   launch     scripts of steps that take no time on the device, on the phantom GPU: the CPU time of bare, recorded and
#              instrumented steps, and of a thousand. It needs no GPU and is none of the default parts
#   events     whether thousands of CUDA events take device memory, which NVML says
# Prints a table for each and writes it to OUT/PART.txt. TURNS says how many turns (default: two). DPSIGHT names the
# binary, PYTHON an interpreter with torch 2.10 or later.
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
