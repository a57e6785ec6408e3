#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the library alone, installs it to a folder, and runs check.sh on that folder.
#
# usage: install.sh SOURCE_ROOT
set -eu

root=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

meson setup "$folder/build" "$root" --prefix="$folder/prefix" -Dtests=disabled -Dperf=disabled -Dexamples=disabled
meson install -C "$folder/build"
for what in layout shared static alone cmake cpp tsan; do
  if [ "$what" = cmake ] && ! command -v cmake > /dev/null; then
    echo "no cmake: left out"
    continue
  fi
  "$here/check.sh" "$root" "$folder/prefix" "$what"
  echo "$what: good"
done
