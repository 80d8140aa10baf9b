#!/bin/bash
# words.sh [LEVEL]: checks documents, help texts, messages and comments against docs/style.md. It prints problems that
# are at least as severe as LEVEL: error (the default), warning or suggestion. Vale's rules are in styles/Dpsight.
set -euo pipefail
cd "$(dirname "$0")/.."
level=${1:-error}
vale=("$(go tool -modfile=tools/go.mod -n vale)" --config "$PWD/.vale.ini" --output line --minAlertLevel "$level")
messages=$(mktemp -d)
trap 'rm -r "$messages"' EXIT
failed=0

# Help texts and documents must pass all rules. Messages and comments must pass only the rules named here.
messages_pass=(--filter '.Name in ["Dpsight.Glossary", "Dpsight.Plain"]')
comments_pass=(--filter '.Name == "Dpsight.Glossary"')
[ "$level" = error ] || messages_pass=() comments_pass=()

git ls-files 'cmd/dpsight/help/*.txt' | xargs "${vale[@]}" || failed=1
# Two documents are left out: docs/reference repeats comments of the code, and scripts/test-cuda.sh writes
# docs/test-cuda.md.
git ls-files '*.md' | grep -v -e /testdata/ -e docs/reference/ -e docs/test-cuda.md |
  xargs "${vale[@]}" || failed=1

git ls-files 'cmd/*.go' 'collect/*.go' 'ingest/*.go' 'analyze/*.go' 'report/*.go' 'schemas/*.go' 'live/*.go' |
  grep -v _test.go | xargs go run ./scripts/messages "$messages"
(cd "$messages" && find . -name '*.md' -printf '%P\n' | sort | xargs "${vale[@]}" "${messages_pass[@]}") || failed=1

git ls-files '*.go' '*.py' '*.c' '*.h' '*.ts' '*.tsx' | grep -v -e /testdata/ -e /dist/ |
  xargs "${vale[@]}" "${comments_pass[@]}" || failed=1
exit $failed
