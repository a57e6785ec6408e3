#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a program prints the same without and with the preloaded library.
# usage: same.sh LIBRARY PROGRAM ARGUMENT...
#
# Seen to fail with these defects, by random operations: a timer is reported as active although it is not; a walk visits
# the adapter's handles; a loop does not close; timers are freed with a loop that is busy; uv_timer_again starts a timer
# that has no repeat; a ref, an unref, a stop or a close reaches only libuv and not the library; a repeat starts only
# after the callback. Seen to fail by a program without libuv: the library prints something.
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
