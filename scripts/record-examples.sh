#!/usr/bin/env bash
# record-examples.sh OUT PART...: makes the recordings of examples/ on a machine with an 80 GiB GPU. The parts:
#   headline, headline-batch, trainers, quick and seq are built-in suites.
#   pairs records vanilla, dpsgd and ghost of headline a second time.
#   claims, presets, methods, methods-rest, lora, mlp, stacks, oom and accuracy-NAME are suites in examples/suites.
#   A suite whose name ends in -ranks needs two GPUs.
#   plain is examples/suites/scripts.yaml, training scripts without DP.
#   collector-alone records an experiment that only sleeps. It shows how much memory and time the collector takes.
#   untouched runs scripts/untouched.sh. Its output becomes OUT/untouched.txt.
# A part may select experiments after a colon, as in headline:method=ghost,method=bk. Experiments that OUT already has
# are not recorded again. Each part prints how long it took. DPSIGHT names the program. If go build -buildvcs=true built
# it in a clone, it knows its commit. PYTHON names an interpreter with torch 2.11.0 and Opacus 1.6.0. lora, plain and
# accuracy-NAME need the packages of requirements/scripts.txt too. DEVICE names another device. With DEVICE=phantom, all
# parts except untouched can be tried without a GPU.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$1
shift
dpsight=${DPSIGHT:-./dpsight}
device=${DEVICE:-cuda}
export DPSIGHT_PYTHON=${PYTHON:-$(command -v python3)}
# The suites of scripts begin their commands with "python", which must be this interpreter.
export PATH=$(dirname "$DPSIGHT_PYTHON"):$PATH
mkdir -p "$out"
"$dpsight" version
status=0
for part in "$@"; do
  begin=$SECONDS
  good=true
  name=${part%%:*}
  only=()
  [ "$name" = pairs ] && [ "$name" = "$part" ] && part=pairs:method=vanilla,method=dpsgd,method=ghost
  if [ "$name" != "$part" ]; then
    IFS=, read -ra choices <<<"${part#*:}"
    for choice in "${choices[@]}"; do only+=(--only "$choice"); done
  fi
  case $name in
    collector-alone) "$dpsight" collect --store "$out/$name" --name idle --device "$device" -- sleep 20 || good=false ;;
    untouched)
      DPSIGHT=$dpsight PYTHON=$DPSIGHT_PYTHON "$here/scripts/untouched.sh" 2>&1 | tee "$out/untouched.txt" || good=false
      ;;
    *)
      suite=$name
      case $name in
        claims | presets | methods | methods-rest | lora | mlp | stacks | oom | accuracy-*)
          suite=examples/suites/$name.yaml
          ;;
      esac
      [ "$name" = plain ] && suite=examples/suites/scripts.yaml
      [ "$name" = pairs ] && suite=headline
      more=()
      [ -d "$out/$name/suites" ] && more=(--resume)
      case $name in presets | methods | methods-rest) more+=(--sample-interval 200ms) ;; esac
      [ "$name" = stacks ] && more+=(--stacks python --stack-steps 3)
      "$dpsight" collect --store "$out/$name" --suite "$suite" --device "$device" --no-report \
        "${only[@]}" "${more[@]}" || good=false
      # One of the two runs of oom must run out of memory.
      if [ "$name" = oom ]; then
        good=false
        statuses=$(grep -h '^  "status"' "$out"/oom/*/run.json | sort | tr -d ' \n')
        [ "$statuses" = '"status":"ok","status":"oom",' ] && good=true
      fi
      ;;
  esac
  $good || status=1
  echo "part $part: $($good && echo ok || echo failed) after $((SECONDS - begin)) s"
done
exit $status
