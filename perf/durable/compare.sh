#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs beanstalkd, Redis and PostgreSQL from Debian's packages, builds, and compares durable timers
# with them: about ten minutes.
#
#     perf/durable/compare.sh [OPTION...]      options of `tickwheel-perf durable --help`
#
# With `--write docs/perf.md` the table goes into the page, with `--chart docs/pictures/perf/durable.svg` a picture
# beside it. In BUILD (default: build-compare), which is made or used again; the servers' files are below it.
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
