#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that each public header compiles alone, in every language that it promises.
#
# usage: compile_alone.sh HEADER_FOLDER C_COMPILER [CXX_COMPILER]
set -u

headers=$1
c_compiler=$2
cxx_compiler=${3:-}
warnings='-Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wundef'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
code=0

# compile COMPILER LANGUAGE STANDARD HEADER
compile() {
  # The second include finds a missing guard.
  printf '#include <%s>\n#include <%s>\nextern int keep;\n' "$4" "$4" > "$folder/alone.$2"
  # shellcheck disable=SC2086
  if ! $1 -std="$3" $warnings -I"$headers" -fsyntax-only "$folder/alone.$2"; then
    echo "$4: does not compile alone as $3"
    code=1
  fi
}

for path in "$headers"/tickwheel.h "$headers"/tickwheel/*.h; do
  header=${path#"$headers"/}
  for standard in c99 c11 gnu17; do
    compile "$c_compiler" c "$standard" "$header"
  done
  test -n "$cxx_compiler" || continue
  for standard in c++11 c++20; do
    compile "$cxx_compiler" cc "$standard" "$header"
  done
done
exit $code
