#!/bin/bash
# words.sh [LEVEL]: holds documents, help texts, messages and comments to docs/style.md. It prints what is at least as
# severe as LEVEL: error (the default), warning or suggestion. Vale's rules are in styles/Dpsight.
set -euo pipefail
cd "$(dirname "$0")/.."
level=${1:-error}
vale=("$(go tool -modfile=tools/go.mod -n vale)" --config "$PWD/.vale.ini" --output line --minAlertLevel "$level")
messages=$(mktemp -d)
trap 'rm -r "$messages"' EXIT
failed=0

git ls-files '*.md' 'cmd/dpsight/help/*.txt' | grep -v /testdata/ | xargs "${vale[@]}" || failed=1

git ls-files 'cmd/*.go' 'collect/*.go' 'ingest/*.go' 'analyze/*.go' 'report/*.go' 'schemas/*.go' 'live/*.go' |
  grep -v _test.go | xargs go run ./scripts/messages "$messages"
(cd "$messages" && find . -name '*.md' -printf '%P\n' | sort | xargs "${vale[@]}") || failed=1

# Comments do not pass all rules yet: what they break otherwise is printed as a warning only.
passed=(--filter '.Name == "Dpsight.Glossary"')
[ "$level" = error ] || passed=()
git ls-files '*.go' '*.py' '*.c' '*.h' '*.ts' '*.tsx' | grep -v -e /testdata/ -e /dist/ |
  xargs "${vale[@]}" "${passed[@]}" || failed=1
exit $failed
