#!/usr/bin/env bash
# profilers.sh BUILD MPI PROGRAM LINKED STATIC PROFILER: a profiler counts the same with the front end as without it, wherever the loader finds it,
# and the front end offloads the same. LINKED is the program linked with the library PROFILER, and STATIC the program that contains it.
set -u
build=$1 mpi=$2 program=$3 linked=$4 static=$5 profiler=$6
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"

launch=$root/tests/mpirun.sh front_end=$build/lib/liboffpath-mpi.so
[ "$mpi" = mpich ] && launch=$root/tests/mpiexec_mpich.sh front_end=$build/lib/liboffpath-mpi-mpich.so
start_daemon "$dir" "$dir/daemon.log" --idle-exit 300
export OFFPATH_DIR=$dir OFFPATH_MIN_BYTES=0 OFFPATH_OPS=all OFFPATH_P2P=all OFFPATH_VERBOSE=1

# run NAME PRELOADED... PROGRAM
run() {
    local name=$1 preloaded=()
    shift
    while [ $# -gt 1 ]; do
        preloaded+=("$1")
        shift
    done
    [ -z "${RESTING_YIELD:-}" ] || preloaded+=("$RESTING_YIELD")
    timeout -k 5 100 "$launch" 3 env LD_PRELOAD="${preloaded[*]}" "$1" >"$dir/$name.out" 2>"$dir/$name.err"
    local code=$?
    cat "$dir/$name.err" >&2
    [ $code -eq 0 ] || fail "$name: ended with $code"
    grep -q '^0 wrong' "$dir/$name.out" || fail "$name: wrong results"
}
# counts_in NAME
counts_in() {
    grep '^profiler: ' "$dir/$1.out"
}

run alone "$profiler" "$program"
run linked.alone "$linked"
[ "$(counts_in alone)" = "profiler: 3 inits, 9 isends, 9 recvs, 18 waits, 9 allgathers, 9 barriers" ] || fail "the profiler counts $(counts_in alone)"
[ "$(counts_in alone)" = "$(counts_in linked.alone)" ] || fail "the profiler counts otherwise where it is linked"
run none "$front_end" "$program"
offloaded() {
    sed -n 's/^offpath: \(offloaded [0-9]* of\|the device carried [0-9]* point-to-point messages\).*/\1/p' "$dir/$1.err"
}
[ -n "$(offloaded none)" ] || fail "nothing is offloaded without a profiler"
run before "$profiler" "$front_end" "$program"
run behind "$front_end" "$profiler" "$program"
run linked "$front_end" "$linked"
run static "$front_end" "$static"
for name in before behind linked static; do
    [ "$(counts_in $name)" = "$(counts_in alone)" ] || fail "$name: the profiler counts $(counts_in $name)"
    [ "$(offloaded $name | tail -1)" = "$(offloaded none | tail -1)" ] || fail "$name: $(offloaded $name), without a profiler $(offloaded none)"
done
end_daemon
