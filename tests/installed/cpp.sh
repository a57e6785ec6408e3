#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and runs the tests of the headers for C++ (tests/cpp), outside the tree, against an installed copy.
# Uses g++ and clang++, as C++17 and C++20: plain, with AddressSanitizer and UBSan, and with ThreadSanitizer.
# The library itself is built without a sanitizer.
# usage: cpp.sh SOURCE_ROOT PREFIX; CXX: one compiler instead of both.
# shellcheck disable=SC2046,SC2086
set -eu

root=$1
prefix=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pkgconfig=$(dirname "$(find "$prefix" -name tickwheel.pc)")
export PKG_CONFIG_PATH="$pkgconfig" LD_LIBRARY_PATH="$(dirname "$pkgconfig")"
export ASAN_OPTIONS=abort_on_error=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1
warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'
run=
# Switches address randomisation off. ThreadSanitizer needs fixed address ranges, which other memory could
# occupy if addresses are random.
! setarch -R true 2> /dev/null || run='setarch -R'

# programs COMPILER STANDARD FLAG...
programs() {
  compiler=$1
  standard=$2
  shift 2
  names='basics executor races timer'
  [ "$standard" = 17 ] || names="$names coroutine coroutine_races"
  for name in $names; do
    program=$folder/$name-${compiler%% *}
    $compiler -std=c++$standard -g1 -O1 $warnings "$root/tests/cpp/$name.cc" -o "$program" "$@" \
      $(pkg-config --cflags --libs tickwheel) -pthread
    $run "$program" > "$program.said" 2>&1 || {
      cat "$program.said"
      echo "$name: failed: $compiler -std=c++$standard $*" >&2
      exit 1
    }
  done
}

undefined() {
  case $1 in
    # clang 14 cannot assemble a coroutine with the data that -fsanitize=function adds.
    *clang*) echo -fsanitize=address,undefined -fno-sanitize=function ;;
    *) echo -fsanitize=address,undefined ;;
  esac
}

# all COMPILER
all() {
  for standard in 17 20; do
    programs "$1" $standard
    programs "$1" $standard $(undefined "$1")
    programs "$1" $standard -fsanitize=thread
  done
}

jobs=
for compiler in ${CXX:-g++ clang++}; do
  command -v "$compiler" > /dev/null || continue
  all "$compiler" &
  jobs="$jobs $!"
done
code=0
for job in $jobs; do
  wait "$job" || code=1
done
exit $code
