#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that no two archives define the same symbol, unless the same object defines it, because a program may
# link all archives at once.
#
# usage: archives.sh NM ARCHIVE ARCHIVE...
set -eu

nm=$1
shift
test $# -ge 2
said=$("$nm" -A -g --defined-only "$@" | awk '
  # A line is PATH/ARCHIVE:OBJECT:ADDRESS KIND SYMBOL. A weak symbol may be there twice.
  $2 ~ /[TDBRC]/ {
    split($1, part, ":")
    object = part[2]
    # Removes the prefix of a source that is in another folder.
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
