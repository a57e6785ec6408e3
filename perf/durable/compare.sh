#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs beanstalkd, Redis and PostgreSQL from Debian's packages, builds, and compares durable timers with them.
# This takes about ten minutes.
#
#     perf/durable/compare.sh [OPTION...]      options of `tickwheel-perf durable --help`
#
# `--write docs/perf.md` writes the table into the page, and `--chart docs/pictures/perf/durable.svg` draws its picture.
# The build folder is $BUILD (default: build-compare); it is made, or used again. It also holds the servers' files.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-build-compare}
packages="gcc libc6-dev binutils meson ninja-build pkg-config python3 liburcu-dev libck-dev libsqlite3-dev
  libpq-dev beanstalkd redis-server postgresql"

. "$root/perf/packages.sh"
# shellcheck disable=SC2086
packages_install $packages

again=
[ ! -e "$build/build.ninja" ] || again=--reconfigure
# shellcheck disable=SC2086
meson setup $again --buildtype=release -Dtests=disabled -Dexamples=disabled -Dperf=enabled -Ddurable=enabled \
  -Dpeer_postgres=enabled "$build" "$root"
ninja -C "$build"
exec "$build/perf/tickwheel-perf" durable --folder "$build" "$@"
