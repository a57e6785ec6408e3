#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a companion library exports the functions that its headers declare with TW_BESIDE_API, and nothing
# else.
#
# usage: exported_beside.sh NM SHARED_LIBRARY HEADER...
set -eu

nm=$1
library=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat "$@" | grep -E '^TW_BESIDE_API ' | sed -E 's/^TW_BESIDE_API [^(]*[ *](tw_[a-z0-9_]+)\(.*/\1/' |
  sort > "$folder/declared"
"$nm" --dynamic --defined-only "$library" | awk '$2 ~ /[TDBRVW]/ { print $3 }' | sed 's/@.*//' | sort > "$folder/exported"

test -s "$folder/declared"
diff -u "$folder/declared" "$folder/exported"
