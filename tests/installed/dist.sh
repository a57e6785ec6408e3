#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the release archive, unpacks it elsewhere, builds it and runs the smoke suite there. So a file that is
# not in git, or a test that needs git, fails here and not at a user's site.
#
# usage: dist.sh SOURCE_ROOT
set -eu

root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if ! git -C "$root" rev-parse --verify --quiet HEAD > "$folder/log" 2>&1; then
  echo "skipped: the archive is made of a git checkout, and $root is none"
  exit 77
fi
# Uses a clone, because the archive contains only committed files.
git clone --quiet "$root" "$folder/clone"
meson setup "$folder/build" "$folder/clone" -Dauto_features=disabled
meson dist -C "$folder/build" --no-tests --formats xztar
mkdir "$folder/unpacked"
tar -xJf "$folder"/build/meson-dist/tickwheel-*.tar.xz -C "$folder/unpacked" --strip-components=1
meson setup "$folder/again" "$folder/unpacked" -Dwerror=true -Dauto_features=disabled -Dtests=enabled
ninja -C "$folder/again"
meson test -C "$folder/again" --suite smoke --print-errorlogs --timeout-multiplier 5
