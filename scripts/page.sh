#!/usr/bin/env bash
# page.sh [check|able|packages]: builds the page's front end from report/web into report/web/dist, which is committed.
# page.sh check builds the front end into another folder, fails if the result differs from the committed files, and
# checks the sources with eslint and prettier. page.sh packages installs the npm packages and builds nothing. The
# packages lie in the user's cache, in a folder for each content of package-lock.json. Some packages contain Go files,
# which must not be in the checkout. page.sh able exits with 0 if Node is recent enough.
set -euo pipefail
if [ "${1-}" = able ]; then
  exec node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'
fi
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
if [ "${1-}" = packages ]; then exit; fi
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npx tsc --noEmit
if [ "${1-}" = check ]; then
  npx eslint --max-warnings 0 src tests
  npx prettier --check --log-level warn src tests ./*.mjs ./*.ts
fi
npx vite build --logLevel warn --outDir "$built" --emptyOutDir
for f in page.js page.css; do
  if [ "${1-}" != check ]; then
    gzip -9nc "$built/$f" >"dist/$f.gz"
  elif ! gzip -dc "dist/$f.gz" | cmp - "$built/$f"; then
    echo "report/web/dist is not what its sources make: scripts/page.sh" >&2
    exit 1
  fi
done
echo "the page takes $(cat dist/page.js.gz dist/page.css.gz | wc -c) bytes of the binary" >&2
