#!/usr/bin/env bash
# venv.sh REQUIREMENTS: prints the interpreter of a virtual environment with the packages of a requirements file. If
# there is no such environment, venv.sh makes it first. Environments lie in the user's cache. Their names contain a hash
# of the file's content and of the Python version, so all checkouts share them.
set -euo pipefail
requirements=$1
python=${PYTHON:-python3}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dpsight
version=$("$python" -c 'import sys
assert sys.version_info >= (3, 10), "Python 3.10 or later is needed"
print("%d.%d" % sys.version_info[:2])')
key=$( (cat "$requirements"; echo "python $version") | sha256sum | cut -c1-12)
venv=$cache/venv-$(basename "$requirements" .txt)-$key
mkdir -p "$cache"
exec 9>"$venv.lock"
flock 9
if [ ! -e "$venv/.complete" ]; then
  echo "making $(basename "$venv") in the cache (torch is a few GB: one to five minutes)" >&2
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2
  touch "$venv/.complete"
fi
echo "$venv/bin/python"
