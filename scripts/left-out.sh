#!/usr/bin/env bash
# left-out.sh [-run [K/N] | -packages]: prints, in one line, how many tests `make test` leaves out, in whole or in part.
# With -run it prints the names of these tests as a pattern for go test -run. With -run K/N it prints every Nth name,
# beginning with the Kth. With -packages it prints the packages of these tests. A Go test is left out by a call of
# testkit.Rest, Part or WithRest, and a Python test by @rest.
set -euo pipefail
cd "$(dirname "$0")/.."
marked=$(grep -rlE 'testkit\.(Rest|Part|WithRest)\(' --include=*_test.go . | sort)
packages=$({ for file in $marked; do dirname "$file"; done; echo ./collect/agent; } | sort -u)
# names has the test functions that call testkit.Rest, Part or WithRest. All Python tests of the agent are one Go test.
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
