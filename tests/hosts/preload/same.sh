#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a program prints the same without and with the preloaded library.
#
# usage: same.sh LIBRARY PROGRAM ARGUMENT...
#
# Seen to fail with these defects: a stopped timer is reported as active; uv_walk visits the adapter's handles;
# a loop cannot be closed; uv_timer_again is wrong for a timer without a repeat; uv_ref or uv_unref changes only
# libuv's handle.
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
