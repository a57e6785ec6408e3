#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds the model checks against any source tree, without meson, and runs them:
#
#     run.sh SOURCE_DIR [option or harness of tickwheel-model...]
#
# SOURCE_DIR is a folder like `src`, perhaps with changes. Public headers come from the folder `include` next to
# it or, if there is none, from this repository. Exit code: 0 if all harnesses passed; 1 if one failed (this
# prints what it saw, its name and how to replay it); 2 if the sources do not compile.
#
# Environment: CC (gcc), JOBS (2), WORK. WORK is a folder to build in, and is kept. The model's runtime does not
# depend on SOURCE_DIR, so it is compiled only once in it.
set -u

here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$1" && pwd) || exit 2
shift
CC=${CC:-gcc}
JOBS=${JOBS:-2}
if [ -z "${WORK:-}" ]; then
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK/runtime" "$WORK/seen" || exit 2
include_dir=$source_dir/../include
[ -d "$include_dir" ] || include_dir=$here/../../include

common=(-std=gnu11 -D_GNU_SOURCE -g -U_FORTIFY_SOURCE -fexceptions -I"$here" -I"$here/runtime/shim" -I"$source_dir" -I"$include_dir")
seen=(-O1 -fsanitize=thread -D_Thread_local= '-Dtwi_thread_self=(*model_thread_self())' '-Dtwi_timer_seen=(*model_timer_seen())' '-Dtwi_keyed_seen=(*model_keyed_seen())' -DTWI_RCU_BY_CALL -DTWI_RING_BITS=2 -DTWI_RING_LEAST_BITS=1 -DTWI_RING_BUSY=3 -DTWI_REST_LEAST=1 -DTWI_CLAIM_PLACES=2 -DTWI_TSC_READ_EARLY=twi_tsc_read -DTWI_CHUNK_TASKS=2 -DTWI_SCOPE_NEAR=1 -DTWI_SCOPE_SECOND=2 -DTWI_SCOPE_SPARE=1 -DTWI_SERIALS_OF_CHUNK=4)
[ "$(uname -m)" = x86_64 ] && seen+=(-mcx16 -mprfchw)
# Makes the library build without its special code for ThreadSanitizer, so that fences stay fences.
case $("$CC" --version) in
  *clang*) seen+=('-D__has_feature(x)=0' -Wno-builtin-macro-redefined) ;;
  *) seen+=(-U__SANITIZE_THREAD__ -Wno-tsan) ;;
esac

# compile OBJECT FILE FLAG...: compiles in the background, with at most JOBS compilers at once.
failed=0
compile() {
  local object=$1 file=$2
  shift 2
  while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do
    wait -n || failed=1
  done
  "$CC" "${common[@]}" "$@" -c "$file" -o "$object" &
}

objects=()
fresh=$(find "$here/runtime" "$here/model.h" "$0" -newer "$WORK/runtime/done" 2>&1 | head -n 1)
for file in "$here"/runtime/*.c; do
  [ "$file" = "$here/runtime/thread_data.c" ] && continue
  object=$WORK/runtime/$(basename "$file").o
  [ -n "$fresh" ] && compile "$object" "$file" -O3 -fno-strict-aliasing
  objects+=("$object")
done
while read -r file; do
  object=$WORK/seen/$(echo "${file#"$source_dir"/}" | tr / _).o
  compile "$object" "$file" "${seen[@]}"
  objects+=("$object")
done < <(find "$source_dir" -name '*.c' -not -path '*/executors/*' -not -path '*/durable/*' -not -path '*/hosts/*'; ls "$source_dir"/durable/{request,stage,file/claim,fresh/table}.c; echo "$here/runtime/thread_data.c"; find "$here" -name '*.c' -not -path '*/runtime/*' -not -path '*/genmc/*')
for job in $(jobs -p); do
  wait "$job" || failed=1
done
[ "$failed" = 0 ] || exit 2
touch "$WORK/runtime/done"

wraps=()
for name in $(cat "$here/runtime/wrapped.txt"); do
  wraps+=("-Wl,--wrap=$name")
done
"$CC" -no-pie -o "$WORK/tickwheel-model" "${objects[@]}" "${wraps[@]}" -pthread || exit 2
"$WORK/tickwheel-model" "$@"
