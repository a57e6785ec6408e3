#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages that the peers need, builds all peers, and compares them with tickwheel.
# This takes a quarter of an hour on two processors. Without options, it also compares the timers of event loops with
# those of tickwheel that can replace them.
#
#     perf/compare.sh [OPTION...]      options and workloads of `tickwheel-perf compare`
#
# The build folder is $BUILD (default: build-compare); it is made, or used again. Results are also written to
# compare.json in the current folder, unless the options name another file.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-build-compare}
packages="gcc g++ libc6-dev binutils meson ninja-build pkg-config liburcu-dev libck-dev libzstd-dev
  libevent-dev libev-dev libuv1-dev libboost-dev libdpdk-dev golang-go libnetty-java default-jdk-headless"
peers="asio dpdk go jdk libev libevent libuv mutex_heap mutex_wheel netty posix_timer timerfd"

. "$root/perf/packages.sh"
# shellcheck disable=SC2086
packages_install $packages

# Configures the build folder, or configures it again if it exists.
set_up() {
  again=
  [ ! -e "$build/build.ninja" ] || again=--reconfigure
  set -- -Dtests=disabled -Dexamples=disabled -Dperf=enabled
  for peer in $peers; do
    set -- "$@" "-Dpeer_$peer=enabled"
  done
  # shellcheck disable=SC2086
  meson setup $again "$@" "$build" "$root"
}
set_up
ninja -C "$build"

all=false
[ $# -gt 0 ] || all=true
case " $* " in
  *' --json'*) ;;
  *) set -- --json compare.json "$@" ;;
esac
"$build/perf/tickwheel-perf" compare "$@"
# The timers of event loops, and those of tickwheel behind the loops' functions (docs/hosts.md).
! $all || "$build/perf/hosts"
