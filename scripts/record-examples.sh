#!/usr/bin/env bash
# record-examples.sh OUT PART...: makes the recordings of examples/ on a machine with an 80 GiB GPU. The parts:
#   checks          the collector alone (its experiment only sleeps), which shows what the collector itself takes
#   headline, headline-batch, trainers, quick, seq    the built-in suites (examples/pairs is headline:method=vanilla,method=dpsgd,method=ghost once more)
#   claims, presets, lora, mlp    examples/suites/claims.yaml and so on (lora as plain)
#   plain           examples/suites/scripts.yaml: training scripts without DP (torchvision, transformers and peft besides)
#   accuracy-first, accuracy-second, accuracy-ranks, accuracy-ranks-second    examples/suites/accuracy-*.yaml, as plain; those of ranks need two GPUs
#   A part may have selections after a colon: headline:method=ghost,method=bk. What OUT holds already is not made again.
# DPSIGHT names the binary, PYTHON an interpreter with torch 2.11.0 and Opacus 1.6.0.
set -uo pipefail
out=$1
shift
dpsight=${DPSIGHT:-./dpsight}
export DPSIGHT_PYTHON=${PYTHON:-$(command -v python3)}
mkdir -p "$out"
status=0
for part in "$@"; do
  name=${part%%:*}
  only=()
  if [ "$name" != "$part" ]; then
    IFS=, read -ra choices <<<"${part#*:}"
    for choice in "${choices[@]}"; do only+=(--only "$choice"); done
  fi
  case $name in
    checks) "$dpsight" collect --store "$out/checks" --name idle --device cuda -- sleep 20 || status=1 ;;
    *)
      suite=$name
      case $name in claims | presets | lora | mlp | accuracy-*) suite=examples/suites/$name.yaml ;; esac
      [ "$name" = plain ] && suite=examples/suites/scripts.yaml
      resume=()
      [ -d "$out/$name/suites" ] && resume=(--resume)
      [ "$name" = presets ] && resume+=(--sample-interval 200ms)
      "$dpsight" collect --store "$out/$name" --suite "$suite" --device cuda --no-report "${only[@]}" "${resume[@]}" || status=1
      ;;
  esac
done
exit $status
