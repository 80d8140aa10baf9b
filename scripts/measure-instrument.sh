#!/usr/bin/env bash
# measure-instrument.sh OUT [PART...]: measures the cost of recording on a machine with a GPU. The parts (default: all
# except launch):
#   steps a script of three thousand steps of about 10 ms, whose pace the host sets. It is timed without dpsight, as a
#   bare run, and recorded with the defaults, by turns. Shows the cost of a bare step, the run's extra wall time, and
#   the share of drains
# Prints a table for each and writes it to OUT/PART.txt. TURNS is the number of turns (default: two). DPSIGHT names the
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
