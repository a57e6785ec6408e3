#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that none of our libraries uses a lock.
#
# usage: no_locks.sh NM LIBRARY...
set -u

nm=$1
shift
locks=' (pthread_(mutex|rwlock|cond|spin|barrier)_[a-z_]*|sem_[a-z_]*|(mtx|cnd)_[a-z_]*)(@.*)?$'
code=0

for library in "$@"; do
  symbols=$("$nm" --undefined-only "$library" 2>/dev/null)
  if [ -z "$symbols" ]; then
    echo "$library: nm shows no undefined symbols at all"
    code=1
  elif echo "$symbols" | grep -E "$locks"; then
    echo "$library: asks for the locks above"
    code=1
  fi
done
exit $code
