#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a build with -m32 is rejected when it is configured, and that the message gives the reason. Needs
# no 32-bit libraries.
#
# usage: rejected.sh SOURCE_ROOT
set -eu

root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/cross.ini" << 'END'
[binaries]
c = ['gcc', '-m32']
[properties]
skip_sanity_check = true
[host_machine]
system = 'linux'
cpu_family = 'x86'
cpu = 'i686'
endian = 'little'
END

command -v gcc > /dev/null || exit 77
if meson setup "$folder/build" "$root" --cross-file "$folder/cross.ini" > "$folder/log" 2>&1; then
  echo "configured for 32 bits"
  exit 1
fi
grep 'tickwheel needs a 64-bit machine: ' "$folder/log" || {
  cat "$folder/log"
  exit 1
}
