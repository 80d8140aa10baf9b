#!/usr/bin/env bash
# record-headline.sh OUT: makes the recordings of examples/ on a machine with an 80 GiB GPU: the headline suite, and a run of the
# collector alone (its experiment only sleeps), which shows what the collector itself takes.
# DPSIGHT names the binary, PYTHON an interpreter with torch 2.11.0 and Opacus 1.6.0.
set -euo pipefail
out=$1
dpsight=${DPSIGHT:-./dpsight}
export DPSIGHT_PYTHON=${PYTHON:-$(command -v python3)}
mkdir -p "$out"
"$dpsight" collect --store "$out/checks" --name idle --device cuda -- sleep 20
"$dpsight" collect --store "$out/headline" --suite headline --device cuda --no-report
"$dpsight" runs "$out/headline"
"$dpsight" analyze overhead "$out/headline"
