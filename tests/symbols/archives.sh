#!/bin/sh
# SPDX-License-Identifier: MIT
# A program links all archives at once. So no two of them define a symbol, unless by the same object.
# usage: archives.sh NM ARCHIVE ARCHIVE...
set -eu

nm=$1
shift
test $# -ge 2
said=$("$nm" -A -g --defined-only "$@" | awk '
  # PATH/ARCHIVE:OBJECT:ADDRESS KIND SYMBOL; a weak one may come twice.
  $2 ~ /[TDBRC]/ {
    split($1, part, ":")
    object = part[2]
    # A source of another folder.
    sub(/^(\.\._)+/, "", object)
    if ($3 in of && of[$3] != object)
      print $3 ": " of[$3] " and " object
    of[$3] = object
    count++ }
  END { if (count == 0) print "no symbols" }')
test -z "$said" || {
  echo "$said"
  exit 1
}
