#!/usr/bin/env bash
# squeeze.sh STORE...: compresses the sealed journals of stores that are to be published once more, with zstd's own encoder at its
# level 19: a third less than what dpsight's writes, in a hundred times its time. What they unpack to stays the same.
set -euo pipefail
shopt -s nullglob
for store in "$@"; do
  for journal in "$store"/*/spool/*.dps.zst; do
    zstd -dcq "$journal" | zstd -19 -qfo "$journal.partial"
    if [ "$(stat -c %s "$journal.partial")" -lt "$(stat -c %s "$journal")" ] && cmp -s <(zstd -dcq "$journal") <(zstd -dcq "$journal.partial"); then
      mv "$journal.partial" "$journal"
    else
      rm "$journal.partial"
    fi
  done
done
