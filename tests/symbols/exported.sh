#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the shared library exports the functions that the headers declare with TW_API, and nothing else.
# The version script must name the same functions. The suite docs checks that each has its manual page.
#
# usage: exported.sh NM SHARED_LIBRARY HEADER_FOLDER VERSION_SCRIPT
set -eu

nm=$1
library=$2
headers=$3
script=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat "$headers"/tickwheel/*.h | grep -E '^TW_API ' |
  sed -E 's/^TW_API [^(]*[ *](tw_[a-z0-9_]+)\(.*/\1/' | sort > "$folder/declared"
"$nm" --dynamic --defined-only "$library" | awk '$2 ~ /[TDBRVW]/ { print $3 }' |
  sed 's/@.*//' | sort > "$folder/exported"
sed -nE 's/^[[:space:]]+(tw_[a-z0-9_]+);$/\1/p' "$script" | sort > "$folder/named"

test "$(wc -l < "$folder/declared")" -ge 20
diff -u "$folder/declared" "$folder/exported"
diff -u "$folder/declared" "$folder/named"
