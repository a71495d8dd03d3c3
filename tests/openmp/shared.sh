#!/usr/bin/env bash
# shared.sh BUILD PROGRAM: what is copied of memory that host and devices can share: nothing on local devices, everything where that is
# switched off.
set -euo pipefail
build=$1 program=$2
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_TARGET_REPORT=1

# copies LINES [SETTINGS...]: the program maps 40,000 bytes on every device, and reports LINES.
copies() {
    local lines=$1
    shift
    timeout 20 env "$@" "$program" count >"$dir/out.txt" 2>"$dir/report.log" || fail "$*: it ended with $?"
    diff <(printf '%b\n' "$lines") <(grep -v "bytes of images" "$dir/report.log") >&2 || fail "$*: another report than expected"
    rm "$dir/report.log"
}

mkdir "$dir/a" "$dir/b"
start_daemon "$dir/a" "$dir/a.log" --name one
start_daemon "$dir/b" "$dir/b.log" --name two
export OFFPATH_TARGET_DEVICES=$dir/a,$dir/b
copies "offpath: device one: 0 bytes copied to it, 0 from it; 80000 bytes shared instead
offpath: device two: 0 bytes copied to it, 0 from it; 80000 bytes shared instead"
copies "offpath: device one: 40000 bytes copied to it, 40000 from it; 0 bytes shared instead" OFFPATH_TARGET_SHARE=off OFFPATH_TARGET_DEVICES="$dir/a"
