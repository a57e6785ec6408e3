#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the pictures of docs/perf.md anew: builds, measures for five minutes, draws. The engines are
# those that the machine has the libraries of; perf/compare.sh installs them all.
#
#     perf/pictures.sh [FOLDER]      default: docs/pictures/perf
#
# In BUILD (default: build-pictures), which is made or used again; there the results stay too.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/docs/pictures/perf}
build=${BUILD:-build-pictures}

[ -e "$build/build.ninja" ] || meson setup -Dtests=disabled -Dexamples=disabled -Dperf=enabled "$build" "$root"
ninja -C "$build"

measure() {
  result=$build/$1.json
  shift
  "$build/perf/tickwheel-perf" "$@" --json "$result"
}
# Sizes that fit into the minutes; three repeats, so that one that is disturbed counts for nothing.
measure scale scale pending producers --repeat 3 --pending 10000000
measure compare compare schedule-cancel fire --allow-missing --repeat 3 --ops 1000000
measure light compare light --allow-missing --repeat 3
"$build/perf/tickwheel-perf" plot "$build/scale.json" "$build/compare.json" "$build/light.json" --output "$folder"
