#!/bin/sh
# SPDX-License-Identifier: MIT
# A program prints the same without and with the preloaded library.
# usage: same.sh LIBRARY PROGRAM ARGUMENT...
#
# Seen to fail: a timer that is active while it is not; a walk that visits the adapter's handles; a loop that does not close;
# uv_timer_again without a repeat; a reference that only libuv knows.
set -eu

library=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$@" > "$folder/without"
LD_PRELOAD=$library TESTS_PRELOADED=1 "$@" > "$folder/with"
test -s "$folder/without"
cmp "$folder/without" "$folder/with" || {
  diff "$folder/without" "$folder/with" | head -n 20
  exit 1
}
