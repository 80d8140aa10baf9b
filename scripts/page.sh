#!/usr/bin/env bash
# page.sh [check]: builds the page's front end, report/web, into report/web/dist, which is committed. With check it
# builds elsewhere, and fails where what is committed differs. The packages lie in the user's cache, keyed by the lock
# file: some of them have Go files, which must not be in the checkout.
set -euo pipefail
cd "$(dirname "$0")/../report/web"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dpsight
key=$( (cat package-lock.json; node --version) | sha256sum | cut -c1-12)
packages=$cache/page-$key
mkdir -p "$cache"
exec 9>"$packages.lock"
flock 9
if [ ! -e "$packages/.complete" ]; then
  echo "making $(basename "$packages") in the cache" >&2
  rm -rf "$packages"
  mkdir "$packages"
  cp package.json package-lock.json "$packages"
  npm ci --prefix "$packages" --ignore-scripts --no-audit --no-fund >&2
  touch "$packages/.complete"
fi
ln -sfn "$packages/node_modules" node_modules
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npx tsc --noEmit
npx vite build --logLevel warn --outDir "$built" --emptyOutDir
for f in page.js page.css; do
  if [ "${1-}" != check ]; then
    gzip -9nc "$built/$f" >"dist/$f.gz"
  elif ! gzip -dc "dist/$f.gz" | cmp - "$built/$f"; then
    echo "report/web/dist is not what its sources make: scripts/page.sh" >&2
    exit 1
  fi
done
