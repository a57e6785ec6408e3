#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared library exports what the headers declare with TW_API, and nothing else.
# usage: exported.sh NM SHARED_LIBRARY HEADER_FOLDER
set -eu

nm=$1
library=$2
headers=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat "$headers"/tickwheel/*.h | grep -E '^TW_API ' |
  sed -E 's/^TW_API [^(]*[ *](tw_[a-z0-9_]+)\(.*/\1/' | sort > "$folder/declared"
"$nm" --dynamic --defined-only "$library" | awk '$2 ~ /[TDBRVW]/ { print $3 }' |
  sed 's/@.*//' | sort > "$folder/exported"

test "$(wc -l < "$folder/declared")" -ge 20
diff -u "$folder/declared" "$folder/exported"
