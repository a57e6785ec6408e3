#!/bin/sh
# SPDX-License-Identifier: MIT
# A program prints the same without and with the preloaded library.
# usage: same.sh LIBRARY PROGRAM ARGUMENT...
#
# Seen to fail, by random operations: a timer that is active while it is not; a walk that visits the adapter's handles;
# a loop that does not close; timers freed with a loop that is busy; uv_timer_again without a repeat; a reference that
# only libuv knows; a repeat that starts after the callback; a stop or a close that only libuv knows. By a program
# without libuv: a library that prints.
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
