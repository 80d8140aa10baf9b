#!/usr/bin/env bash
# page.sh [check]: builds the page's front end, report/web, into report/web/dist, which is committed. With check it builds
# elsewhere, and fails where what is committed differs. The packages lie in the user's cache, keyed by the lock file:
# some of them have Go files, which must not be in the checkout.
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
if [ "${1-}" != check ]; then
  exec npx vite build
fi
npx tsc --noEmit
npx eslint src
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npx vite build --logLevel warn --outDir "$built" --emptyOutDir
for f in page.js page.css; do
  cmp "dist/$f" "$built/$f" || { echo "report/web/dist is not what its sources make: scripts/page.sh" >&2; exit 1; }
done
