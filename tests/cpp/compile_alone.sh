#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that each C++ header compiles alone and included twice, without a warning.
# usage: compile_alone.sh HEADER_FOLDER CXX_COMPILER
set -u

headers=$1
warnings='-Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wundef'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
code=0

for path in "$headers"/tickwheel.hpp "$headers"/tickwheel/cpp/*.hpp; do
  header=${path#"$headers"/}
  printf '#include <%s>\n#include <%s>\nextern int keep;\n' "$header" "$header" > "$folder/alone.cc"
  for standard in c++17 c++20; do
    # These headers need coroutines, which C++17 does not have.
    case $standard:$header in
      c++17:*/sleep.hpp | c++17:*/task.hpp | c++17:*/with_timeout.hpp) continue ;;
    esac
    # shellcheck disable=SC2086
    if ! $2 -std=$standard $warnings -I"$headers" -fsyntax-only "$folder/alone.cc"; then
      echo "$header: does not compile alone as $standard"
      code=1
    fi
  done
done
exit $code
