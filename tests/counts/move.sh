#!/bin/bash
# SPDX-License-Identifier: MIT
# Moves the baseline of the instruction counts (baseline.json) to those of the present sources, for gcc and
# clang, if they are installed.
#
#     tests/counts/move.sh "why the counts have changed"
set -eu

reason=${1:?"usage: $0 REASON"}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for compiler in gcc clang; do
  if ! command -v "$compiler" > /dev/null; then
    echo "no $compiler: its baseline stays"
    continue
  fi
  CC=$compiler meson setup "$work/$compiler" "$root" -Dperf=disabled -Dexamples=disabled -Dcriterion=disabled > "$work/log" ||
    { cat "$work/log" && exit 1; }
  ninja -C "$work/$compiler" tests/counts/counts-driver > "$work/log" || { cat "$work/log" && exit 1; }
  meson test -C "$work/$compiler" --no-rebuild -v counts --test-args="--update $(printf %q "$reason")"
done
