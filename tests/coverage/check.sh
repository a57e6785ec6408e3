#!/bin/bash
# SPDX-License-Identifier: MIT
# Measures the coverage of src/ by the suites unit, contract, wheel, race, regress, print, faults and hosts.
# Prints the code that was not reached. Fails if lines or branches are below the bounds. Needs gcovr.
#
# usage: check.sh [BUILD_FOLDER]
#
# Branches: the library is built with -fexceptions, for callbacks that end their thread. So the compiler adds a
# branch to each call, for an exception that would leave it. These "throw" branches are no decisions of the
# source. Only they are left out.
#
# A run reaches about 90.0 % of the branches; a few are taken only in some races. The bounds are those of the
# engine. Durable timers are a library of their own and have no bound yet, so their figures are only printed.
set -eu

lines_min=97
branches_min=89.5

root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$(mktemp -d)}

if [ ! -e "$folder/build.ninja" ]; then
  meson setup "$folder" "$root" -Db_coverage=true -Dcriterion=disabled -Dbuildtype=debug -Dexamples=disabled \
    -Dperf=disabled
fi
find "$folder" -name '*.gcda' -delete
meson test -C "$folder" --no-suite long --quiet --print-errorlogs -t 5 \
  --suite unit --suite contract --suite wheel --suite race --suite regress --suite print --suite faults --suite hosts

cd "$folder"
report=(gcovr --root "$root" --object-directory . --exclude-throw-branches)
# The tests of the preloaded library do not run here (tests/hosts/preload).
engine=(--filter "$root/src/" --exclude "$root/src/durable/" --exclude "$root/src/hosts/preload/")
"${report[@]}" --filter "$root/src/durable/" --print-summary
"${report[@]}" "${engine[@]}" --branches
"${report[@]}" "${engine[@]}" --fail-under-line "$lines_min" --fail-under-branch "$branches_min" --print-summary
