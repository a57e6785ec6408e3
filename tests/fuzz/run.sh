#!/bin/sh
# SPDX-License-Identifier: MIT
# Fuzzes the targets of tests/fuzz, one after the other, each with libFuzzer and AFL++ at the same time.
#
# usage: run.sh [SECONDS] [TARGET...]      default: 60 seconds each; targets: oracle trace
#
# Needs clang with libFuzzer's runtime (libclang-rt-14-dev) and afl++. Builds and works in $FUZZ_DIR, or in a
# new folder that is removed if nothing was found. Exit code 0: no finding; 1: a finding, which stays in the
# folder that is printed; 2: not run.
set -u

seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=${*:-oracle trace}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${FUZZ_DIR:-$(mktemp -d)}
findings=0

# AFL++ must ask nothing, draw no screen, and run on any machine.
export AFL_QUIET=1 AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
# On a busy machine every run is slow, so only a very long run counts as a hang.
export AFL_HANG_TMOUT=60000
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# configure FOLDER MESON_OPTION...
configure() {
  folder=$1
  shift
  [ -f "$folder/build.ninja" ] ||
    meson setup "$folder" "$root" -Dtests=enabled -Dexamples=disabled -Ddocs=disabled "$@" >"$folder.log" 2>&1 || {
      cat "$folder.log"
      exit 2
    }
}

build() {
  mkdir -p "$work"
  # The coverage of the player does not matter, only that of the engine.
  echo 'src: *tests/oracle/*' >"$work/denylist"
  export AFL_LLVM_DENYLIST="$work/denylist"
  CC=clang configure "$work/libfuzzer" -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized
  CC=afl-clang-fast configure "$work/afl"
  for target in $targets; do
    ninja -C "$work/libfuzzer" "tests/fuzz/fuzz_$target" >"$work/ninja.log" 2>&1 &&
      ninja -C "$work/afl" "tests/fuzz/replay_$target" >"$work/ninja.log" 2>&1 || {
        cat "$work/ninja.log"
        exit 2
      }
  done
}

libfuzzer() {
  mkdir -p "$work/$1.corpus" "$work/$1.libfuzzer"
  "$work/libfuzzer/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -max_len=600 \
    -entropic=0 "$2" -print_final_stats=1 -artifact_prefix="$work/$1.libfuzzer/" \
    "$work/$1.corpus" "$here/corpus/$1" >"$work/$1.libfuzzer.log" 2>&1
}

afl() {
  afl-fuzz -V "$seconds" -t 20000 -m none -i "$here/corpus/$1" -o "$work/$1.afl" \
    -- "$work/afl/tests/fuzz/replay_$1" >"$work/$1.afl.log" 2>&1
}

afl_stat() {
  sed -n "s/^$2 *: //p" "$work/$1.afl/default/fuzzer_stats"
}

# fuzz TARGET LIBFUZZER_OPTION: runs both fuzzers on one target and prints the result.
fuzz() {
  libfuzzer "$1" "$2" &
  libfuzzer_pid=$!
  afl "$1"
  afl_code=$?
  wait "$libfuzzer_pid"
  libfuzzer_code=$?
  if [ "$afl_code" -ne 0 ] || [ ! -f "$work/$1.afl/default/fuzzer_stats" ]; then
    tail -n 20 "$work/$1.afl.log"
    exit 2
  fi
  executed=$(sed -n 's/^stat::number_of_executed_units: //p' "$work/$1.libfuzzer.log")
  kept=$(find "$work/$1.libfuzzer" -type f | wc -l)
  crashed=$(find "$work/$1.afl/default/crashes" "$work/$1.afl/default/hangs" -name 'id*' | wc -l)
  echo "$1: libFuzzer ${executed:-?} executions, exit code $libfuzzer_code, $kept findings;" \
    "AFL++ $(afl_stat "$1" execs_done) executions, $crashed findings, stability $(afl_stat "$1" stability)"
  if [ "$libfuzzer_code" -ne 0 ] || [ "$kept" -ne 0 ]; then
    tail -n 60 "$work/$1.libfuzzer.log"
    findings=1
  fi
  [ "$crashed" -eq 0 ] || findings=1
}

for tool in clang afl-clang-fast afl-fuzz meson ninja; do
  command -v "$tool" >/dev/null || {
    echo "run.sh: no $tool"
    exit 2
  }
done
build
for target in $targets; do
  case $target in
  # The target prints each bad line to stderr, so the fuzzer closes stderr.
  trace) fuzz trace -close_fd_mask=2 ;;
  # The target itself looks for leaks, in the allocator that the engine uses.
  oracle) fuzz oracle -detect_leaks=0 ;;
  *)
    echo "run.sh: no target $target"
    exit 2
    ;;
  esac
done
if [ "$findings" -ne 0 ]; then
  echo "findings in $work; as text, and small: oracle bytes FILE"
  exit 1
fi
[ -n "${FUZZ_DIR:-}" ] || rm -rf "$work"
exit 0
