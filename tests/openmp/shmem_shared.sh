#!/usr/bin/env bash
# shmem_shared.sh BUILD PROGRAM: what is copied of the symmetric heap by a program of one PE with a local device: nothing.
set -euo pipefail
build=$1 program=$2
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_TARGET_REPORT=1
start_daemon "$dir/s" "$dir/daemon.log" --name one
export OFFPATH_DIR=$dir/s
timeout 60 "$program" >"$dir/out.txt" 2>"$dir/report.log" || fail "the program ended with $?"
diff <(echo "wrong results: 0") "$dir/out.txt" >&2 || fail "another output than expected"
diff <(echo "offpath: device one: 0 bytes copied to it, 0 from it; 2400000 bytes shared instead") <(grep -v "bytes of images" "$dir/report.log") >&2 ||
    fail "another report than expected"
rm "$dir/report.log"
