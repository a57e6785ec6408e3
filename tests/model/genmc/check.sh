#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks a harness of this folder with the model checker GenMC: first every execution that the memory model RC11
# allows, then every execution that IMM allows, which includes load buffering. Exits with 77 (skipped) if there
# is no genmc in the PATH.
#
#     check.sh FILE [compiler flag...]
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
file=$1
shift
if ! command -v genmc > /dev/null; then
  echo "no genmc in the PATH"
  exit 77
fi
for memory in rc11 imm; do
  echo "$file $* under $memory"
  genmc "-$memory" -check-liveness -- -O1 -std=gnu11 -D_GNU_SOURCE -I"$root/src" -I"$root/include" "$@" "$here/$file" || exit 1
done
