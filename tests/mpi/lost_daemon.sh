#!/usr/bin/env bash
# lost_daemon.sh BUILD PROGRAM [remote]: kill -9 of the daemon with operations outstanding, once with MPI_ERRORS_RETURN, once with MPI's default error
# handler. Nothing may hang, and a message must say what died. remote: attached over TCP. SAYS: the expected message, in place of
# the failure of the collective. SAVED=1: nothing fails, and SAYS is a line of the summary.
set -u
build=$1 program=$2 attach=${3:-local}
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
preload=$(preload_of "$program" "$build/lib/liboffpath-mpi.so")
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OFFPATH_DIR=$dir OFFPATH_MIN_BYTES=0
says=${SAYS:-MPI_Iallreduce on MPI_COMM_WORLD (3 ranks)}

[ "$attach" = local ] || listen_options

run() { # MODE
    start_daemon "$dir" "$dir/daemon.log" "${listen[@]}" --idle-exit 60
    [ "$attach" = local ] || use_device "$dir"
    timeout -k 5 60 "$root/tests/mpirun.sh" 3 env LD_PRELOAD="$preload" "$program" "$1" >"$dir/out" 2>"$dir/err.log"
    result=$?
    wait # the daemon is dead, or the program did not do its work
    rm -f "$dir"/*.sock "$dir"/*.pid "$dir"/*.port
    [ "$attach" = local ] || grep -q "offpath: rank [0-9] lost proxy 0 on node .* (offpathd at $OFFPATH_DEVICES, " "$dir/err.log" ||
        fail "nobody names the device and its address"
}

if [ -n "${SAVED:-}" ]; then
    for mode in return fatal; do
        run "$mode"
        [ "$result" -eq 0 ] || fail "the program ended with $result ($mode)"
        grep -q "^offpath: $says" "$dir/err.log" || fail "nobody says what was saved ($mode)"
    done
    exit 0
fi

run return
[ "$result" -eq 0 ] || fail "with MPI_ERRORS_RETURN the program ended with $result"
grep -q "^offpath: rank 0: $says failed: " "$dir/err.log" || fail "nobody says what failed"

run fatal
[ "$result" -ne 0 ] && [ "$result" -ne 124 ] || fail "with the default error handler the job ended with $result"
grep -q "^offpath: rank [0-9]: $says failed: " "$dir/err.log" || fail "nobody says what failed"
exit 0
