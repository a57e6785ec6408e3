#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a user's programs outside the tree against an installed copy, and runs them. usage: check.sh
# SOURCE_ROOT PREFIX layout|shared|static|alone|cmake|cpp|tsan
#
#     layout   every header and page is there, and no file is where Debian's policy has no place for it
#     shared   two C programs and one in C++, by pkg-config, with the shared library
#     static   the same programs, linked statically as a whole
#     alone    shared and static, where pkg-config finds only our files: ck, liburcu, GLib and libuv
#              have no development files there
#     cmake    the same by find_package, shared and with the archive, and a program of durable timers; from a
#              copy that was moved
#     cpp      the headers for C++: cpp.sh
#     tsan     programs with ThreadSanitizer: tsan/check.sh
set -eu

root=$1
prefix=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
warnings='-Wall -Wextra -Werror'
cc=${CC:-cc}
cxx=${CXX:-c++}

fail() {
  echo "$1" >&2
  exit 1
}

pkgconfig=$(dirname "$(find "$prefix" -name tickwheel.pc)")
libdir=$(dirname "$pkgconfig")
export PKG_CONFIG_PATH="$pkgconfig"

layout() {
  for header in "$root"/include/tickwheel.h "$root"/include/tickwheel/*.h; do
    name=${header#"$root"/include/}
    case $name in
      tickwheel/event.h | tickwheel/glib.h | tickwheel/uv.h)
        test -f "$pkgconfig/tickwheel-$(basename "$name" .h).pc" || continue ;;
      tickwheel/uv_timer.h)
        test -f "$pkgconfig/tickwheel-uv-timer.pc" || continue ;;
      tickwheel/durable_postgres.h)
        test -f "$pkgconfig/tickwheel-postgres.pc" || continue ;;
      tickwheel/durable_redis.h)
        test -f "$pkgconfig/tickwheel-redis.pc" || continue ;;
      tickwheel/durable*.h)
        test -f "$pkgconfig/tickwheel-durable.pc" || continue ;;
    esac
    cmp "$header" "$prefix/include/$name"
  done
  for header in "$root"/include/tickwheel.hpp "$root"/include/tickwheel/cpp/*.hpp; do
    cmp "$header" "$prefix/include/${header#"$root"/include/}"
  done
  ! test -f "$prefix/include/tickwheel/asio.hpp" || cmp "$root/include/tickwheel/asio.hpp" "$prefix/include/tickwheel/asio.hpp"
  for page in README.md CHANGELOG.md CONTRIBUTING.md LICENSE "$root"/docs/*.md "$root"/docs/internals/*.md "$root"/docs/zh-CN/*.md; do
    page=${page#"$root"/}
    cmp "$root/$page" "$prefix/share/doc/tickwheel/$page"
  done
  for file in libtickwheel.so libtickwheel.so.0 libtickwheel.a cmake/tickwheel/tickwheel-config.cmake \
    cmake/tickwheel/tickwheel-config-version.cmake; do
    test -e "$libdir/$file" || fail "$libdir/$file: not there"
  done
  # A program requires the SONAME; the file behind that link has the whole version in its name.
  readelf -d "$libdir/libtickwheel.so" | grep -q 'SONAME.*\[libtickwheel\.so\.0\]' || fail "another SONAME"
  if find "$prefix" \( -type f -o -type l \) | sed "s|^$prefix/||" |
    grep -vE '^(bin|include|share/(doc|man|tickwheel|gdb|bash-completion))/|^lib/([a-z0-9_]+-linux-[a-z]+/)?(lib[^/]*|pkgconfig/[^/]*|cmake/tickwheel/[^/]*|tickwheel/libtickwheel-uv-preload\.so)$'; then
    fail "the files above lie where none should"
  fi
}

# runs PROGRAM WORDS: the program must print these words.
runs() {
  said=$(LD_LIBRARY_PATH="$libdir" "$1") || fail "$1: failed"
  test "$said" = "$2" || fail "$1 said: $said"
}

all_run() {
  runs "$1/quickstart" "$(printf 'request 1: answered\nrequest 2: timed out')"
  runs "$1/pool" "200 jobs done, some rejected, none lost"
  runs "$1/from_cxx" ""
}

# links_shared PROGRAM yes|no: checks whether the program requires our shared library.
links_shared() {
  asks=no
  ! readelf -d "$1" | grep -q 'NEEDED.*\[libtickwheel\.so\.' || asks=yes
  test "$asks" = "$2" || fail "$1 asks for libtickwheel.so: $asks"
}

# compile FLAGS...: compiles the programs, as a user's Makefile does.
compile() {
  # shellcheck disable=SC2086
  {
    $cc $warnings "$root/docs/examples/quickstart.c" -o "$folder/quickstart" "$@"
    $cc $warnings "$root/docs/examples/pool.c" -o "$folder/pool" "$@" -pthread
    $cxx $warnings -std=c++11 "$root/tests/headers/from_cxx.cc" -o "$folder/from_cxx" "$@"
  }
}

shared() {
  # shellcheck disable=SC2046
  compile $(pkg-config --cflags --libs tickwheel)
  links_shared "$folder/quickstart" yes
  all_run "$folder"
  for library in event glib uv uv-timer; do
    test ! -f "$pkgconfig/tickwheel-$library.pc" || beside "$library"
  done
}

# beside NAME: a companion library can be linked by its own package name alone.
beside() {
  printf '#include <tickwheel/%s.h>\nint main(void) { return 0; }\n' "$(echo "$1" | tr - _)" > "$folder/beside.c"
  # shellcheck disable=SC2046
  $cc "$folder/beside.c" -o "$folder/beside" -Wl,--no-as-needed $(pkg-config --cflags --libs "tickwheel-$1")
  runs "$folder/beside" ""
}

static() {
  # shellcheck disable=SC2046
  compile -static $(pkg-config --static --cflags --libs tickwheel)
  ! readelf -d "$folder/quickstart" | grep NEEDED || fail "the static program asks for libraries"
  all_run "$folder"
}

# A program that links the shared library must not need the other packages, neither to compile nor to link.
alone() {
  unset PKG_CONFIG_PATH
  export PKG_CONFIG_LIBDIR="$pkgconfig"
  flags=$(pkg-config --cflags tickwheel) || fail "pkg-config --cflags asks for another package"
  test "${flags% }" = "-I$prefix/include" || fail "pkg-config --cflags hands on: $flags"
  # shellcheck disable=SC2046
  $cc "$root/docs/examples/quickstart.c" -o "$folder/traced" -H -Wl,--trace \
    $(pkg-config --cflags --libs tickwheel) > "$folder/opened" 2>&1
  ! grep -E '/(ck|urcu)[a-z_/-]*\.h$|/lib(ck|urcu[a-z-]*)\.(so|a)$' "$folder/opened" ||
    fail "the program opens the development files above"
  shared
  static
}

cmake_programs() {
  cp -a "$prefix" "$folder/moved"
  libdir=$folder/moved${libdir#"$prefix"}
  mkdir "$folder/project"
  cp "$(dirname "$0")/CMakeLists.txt" "$root/docs/examples/quickstart.c" "$root/docs/examples/pool.c" \
    "$root/tests/headers/from_cxx.cc" "$root/docs/examples/manual/durable.c" "$root/docs/examples/manual/check.h" \
    "$folder/project"
  parts=$(find "$pkgconfig" -name 'tickwheel-*.pc' | sed 's|.*/tickwheel-||; s|\.pc$||' | paste -sd ';' -)
  CC=$cc CXX=$cxx cmake -S "$folder/project" -B "$folder/cmake" -DCMAKE_PREFIX_PATH="$folder/moved" "-DPARTS=$parts"
  cmake --build "$folder/cmake"
  links_shared "$folder/cmake/shared/quickstart" yes
  links_shared "$folder/cmake/static/quickstart" no
  all_run "$folder/cmake/shared"
  all_run "$folder/cmake/static"
  case ";$parts;" in
    *";durable;"*) LD_LIBRARY_PATH="$libdir" "$folder/cmake/durable" > "$folder/said" || fail "durable: failed" ;;
  esac
}

case $3 in
  layout | shared | static | alone) "$3" ;;
  cmake) cmake_programs ;;
  cpp) "$(dirname "$0")/cpp.sh" "$root" "$prefix" ;;
  tsan) "$root/tests/installed/tsan/check.sh" "$prefix" ;;
  *) fail "usage: $0 SOURCE_ROOT PREFIX layout|shared|static|alone|cmake|cpp|tsan" ;;
esac
