#!/usr/bin/env bash
# left-out.sh [-run [K/N] | -packages]: prints in one line what `make test` leaves out. With -run it prints the left-out
# tests' names as a pattern for go test -run (with K/N every Nth of them, from the Kth). With -packages it prints their
# packages. Go tests mark what is left out by testkit.Rest, Part or WithRest, Python tests by @rest.
set -euo pipefail
cd "$(dirname "$0")/.."
marked=$(grep -rlE 'testkit\.(Rest|Part|WithRest)\(' --include=*_test.go . | sort)
packages=$({ for file in $marked; do dirname "$file"; done; echo ./collect/agent; } | sort -u)
# Prints the test functions of each file that call one of these. All Python tests of the agent are one Go test.
names=$({
  for file in $marked; do
    awk '/^func / { name = match($2, /^Test[A-Za-z0-9_]+/) ? substr($2, 1, RLENGTH) : "" }
      /testkit\.(Rest|Part|WithRest)\(/ { if (name == "") exit 1; print name }' "$file" ||
      { echo "$file: only a test itself can say that it is left out" >&2; exit 1; }
  done
  echo TestPython
} | sort -u)
case ${1:-} in
  -run)
    share=${2:-1/1}
    names=$(echo "$names" | awk -v k="${share%/*}" -v n="${share#*/}" 'NR % n == k % n')
    echo "^($(echo "$names" | paste -sd '|'))\$"
    ;;
  -packages) echo "$packages" ;;
  *)
    tests=$(echo "$names" | wc -l)
    echo "left out: some or all cases of $tests tests (make test-rest), and what takes hours (make test-long)"
    ;;
esac
