#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the pictures of docs/perf.md anew: builds, measures for five minutes, and draws. It measures the engines whose
# libraries are installed; perf/compare.sh installs all of them.
#
#     perf/pictures.sh [FOLDER]      default: docs/pictures/perf
#
# The build folder is $BUILD (default: build-pictures); it is made, or used again. The results stay there.
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
# The sizes fit into five minutes. With three repeats, the median ignores a repeat that was disturbed.
measure scale scale pending producers --repeat 3 --pending 10000000
measure compare compare schedule-cancel fire --allow-missing --repeat 3 --ops 1000000
measure light compare light --allow-missing --repeat 3
"$build/perf/tickwheel-perf" plot "$build/scale.json" "$build/compare.json" "$build/light.json" --output "$folder"
