#!/usr/bin/env bash
# lost_copies.sh BUILD PROGRAM: copies of a target region that fail end the program with an error that says so.
set -euo pipefail
build=$1 program=$2
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
start_daemon "$dir/s" "$dir/daemon.log" --name dpu0
export OFFPATH_DIR=$dir/s OMP_TARGET_OFFLOAD=MANDATORY
for way in to from nowait depend enter exit data update-to update-from memcpy-to memcpy-from; do
    code=0
    timeout 60 "$program" $way >"$dir/out.txt" 2>"$dir/errors.log" || code=$?
    [ $code -ne 124 ] || fail "$way: not over after 60 s"
    [ $code -ne 0 ] || fail "$way: ended well"
    ! grep "went on" "$dir/out.txt" || fail "$way: the program went on"
    grep -Eq 'bytes at 0x[0-9a-f]+ of the program cannot be (read|written)' "$dir/errors.log" || fail "$way: nobody said what failed"
    rm "$dir/errors.log"
done
for way in nowhere-to nowhere-from nowhere-small-to nowhere-small-from; do
    code=0
    timeout 60 "$program" $way >"$dir/out.txt" 2>"$dir/errors.log" || code=$?
    [ $code -ne 0 ] && [ $code -ne 124 ] || fail "$way: ended with $code"
    ! grep "went on" "$dir/out.txt" || fail "$way: the program went on"
    grep -Eq ': a copy failed: ' "$dir/errors.log" || fail "$way: nobody said that a copy failed"
    ! grep "__omp_offloading" "$dir/errors.log" || fail "$way: a region is blamed"
    rm "$dir/errors.log"
done
