#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds two copies of the tree, in folders with names of different length. Each installed library must have
# the same bytes. The same must hold with debugging information, because -ffile-prefix-map removes the
# folder's name.
#
# usage: reproducible.sh SOURCE_ROOT [release|debug]   (default: both)
set -eu

root=$1
kinds=${2:-release debug}
folder=$(mktemp -d)
export CCACHE_DISABLE=1
trap 'rm -rf "$folder"' EXIT

# built PLACE NAME OPTION...: builds PLACE/tree and installs to PLACE/tree/NAME.
built() {
  place=$1
  name=$2
  shift 2
  meson setup "$place/tree/$name" "$place/tree" --prefix=/usr -Dtests=disabled -Dperf=disabled \
    -Dexamples=disabled -Ddocs=disabled "$@" > "$folder/log" &&
    DESTDIR="$place/$name" ninja -C "$place/tree/$name" install >> "$folder/log" || {
    cat "$folder/log"
    exit 1
  }
}

for place in "$folder/one" "$folder/another/place"; do
  mkdir -p "$place/tree"
  cp -R "$root/meson.build" "$root/meson_options.txt" "$root/include" "$root/src" "$root/docs" "$root/perf" \
    "$root/tests" "$root"/*.md "$root/LICENSE" "$place/tree"
  for kind in $kinds; do
    case $kind in
      release) built "$place" release ;;
      debug) built "$place" debug -Dbuildtype=debugoptimized "-Dc_args=-ffile-prefix-map=$place/tree=." ;;
    esac
  done
done

for kind in $kinds; do
  test "$(find "$folder/one/$kind" -name 'libtickwheel*' -type f | wc -l)" -ge 2
  diff -r "$folder/one/$kind" "$folder/another/place/$kind"
done
