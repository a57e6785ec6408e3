#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles programs with -fsanitize=thread, links them to an installed copy without it, shared and static, and runs
# them.
# ThreadSanitizer must report nothing where the library orders accesses, and must report each race of the
# programs' own.
#
# usage: check.sh PREFIX; CC: one compiler instead of gcc and clang. TSAN_REPEAT: how often to run each.
#
# shellcheck disable=SC2046,SC2086
set -eu

prefix=$1
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pkgconfig=$(dirname "$(find "$prefix" -name tickwheel.pc)")
libdir=$(dirname "$pkgconfig")
export PKG_CONFIG_PATH="$pkgconfig" LD_LIBRARY_PATH="$libdir" TSAN_OPTIONS=exitcode=66
run=
# Switches address randomisation off. ThreadSanitizer needs fixed address ranges, which other memory could
# occupy if addresses are random.
! setarch -R true 2> /dev/null || run='setarch -R'

fail() {
  echo "$1" >&2
  exit 1
}

# build COMPILER PROGRAM FLAGS...
build() {
  compiler=$1
  name=$2
  shift 2
  "$compiler" -g -O1 -Wall -Wextra -Werror -fsanitize=thread "$here/$name.c" -o "$folder/$name" "$@" -pthread
}

# silent PROGRAM: must pass without a report.
silent() {
  $run "$folder/$1" > "$folder/said" 2>&1 || {
    cat "$folder/said"
    fail "$1: not silent, $what"
  }
}

# reported PROGRAM SCENE: ThreadSanitizer must report the race of the scene in this program.
reported() {
  code=0
  $run "$folder/$1" "$2" > "$folder/said" 2>&1 || code=$?
  if [ "$code" -ne 66 ] || ! grep -qE 'WARNING: ThreadSanitizer: (data race|heap-use-after-free)' "$folder/said"; then
    cat "$folder/said"
    fail "$1 $2: exit code $code and no report, $what"
  fi
}

# programs COMPILER: builds and runs the programs, with `flags`.
programs() {
  for program in edges layers hooks; do
    build "$1" "$program" $flags
    silent "$program"
  done
  build "$1" races $flags
  for scene in $($run "$folder/races"); do
    reported races "$scene"
  done
}

# executors COMPILER: does the same for the executors that are installed.
executors() {
  for name in glib uv; do
    test -f "$pkgconfig/tickwheel-$name.pc" || continue
    build "$1" "$name" -I"$here" $(pkg-config --cflags --libs "tickwheel-$name" "$(library_of "$name")") \
      $(pkg-config --cflags --libs tickwheel)
    silent "$name"
  done
}

library_of() {
  case $1 in
    glib) echo glib-2.0 ;;
    uv) echo libuv ;;
  esac
}

both_ways() {
  what="$1, shared library"
  flags=$(pkg-config --cflags --libs tickwheel)
  programs "$1"
  executors "$1"
  what="$1, static library"
  flags=$(pkg-config --static --cflags --libs tickwheel | sed 's/-ltickwheel\>/-l:libtickwheel.a/')
  programs "$1"
}

# usable COMPILER: returns 0 if it is installed, with ThreadSanitizer's runtime.
usable() {
  echo 'int main(void) { return 0; }' > "$folder/usable.c"
  "$1" -fsanitize=thread "$folder/usable.c" -o "$folder/usable" 2> /dev/null
}

tried=0
for compiler in ${CC:-gcc clang}; do
  usable "$compiler" || {
    echo "$compiler has no ThreadSanitizer: left out"
    continue
  }
  tried=$((tried + 1))
  for _ in $(seq "${TSAN_REPEAT:-1}"); do
    both_ways "$compiler"
  done
done
[ "$tried" -gt 0 ] || fail "no compiler"
