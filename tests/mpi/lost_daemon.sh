#!/usr/bin/env bash
# lost_daemon.sh BUILD PROGRAM [remote]: kill -9 of the daemon with operations under way, once with MPI_ERRORS_RETURN, once with
# MPI's default error handler. No hang over 10 s, and somebody says what died. remote: attached over TCP.
# SAYS: what somebody says, in place of the failure of the collective.
set -u
build=$1 program=$2 attach=${3:-local}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/offpath-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "lost_daemon.sh: $*" >&2
    sed 's/^/  /' "$dir/err" >&2
    exit 1
}
preload=$build/lib/liboffpath-mpi.so
for runtime in $(ldd "$program" | awk '/lib(a|t)san/ { print $3 }'); do preload="$runtime $preload"; done
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OFFPATH_DIR=$dir OFFPATH_MIN_BYTES=0
says=${SAYS:-MPI_Ialltoall on MPI_COMM_WORLD (3 ranks)}

options=()
if [ "$attach" = remote ]; then
    (umask 077 && head -c 32 /dev/urandom >"$dir/key")
    options=(--listen 127.0.0.1:0 --key-file "$dir/key")
    export OFFPATH_KEY_FILE=$dir/key
fi

run() { # MODE
    mkfifo "$dir/ready"
    "$build/bin/offpathd" --dir "$dir" "${options[@]}" --ready-fd 3 --idle-exit 60 3<>"$dir/ready" >"$dir/daemon.out" 2>&1 &
    exec 4<>"$dir/ready"
    read -r -n 1 -t 20 _ <&4 || fail "the daemon was not ready within 20 s"
    exec 4<&-
    rm -f "$dir/ready"
    [ "$attach" = remote ] && export OFFPATH_DEVICES=127.0.0.1:$(cat "$dir"/*.port)
    SECONDS=0
    timeout -k 5 60 "$root/tests/mpirun.sh" 3 env LD_PRELOAD="$preload" "$program" "$1" >"$dir/out" 2>"$dir/err"
    result=$?
    wait # the daemon is dead, or the program did not do its work
    rm -f "$dir"/*.sock "$dir"/*.pid "$dir"/*.port
    [ "$attach" = local ] || grep -q "offpath: rank [0-9] lost proxy 0 on node .* (offpathd at $OFFPATH_DEVICES, " "$dir/err" ||
        fail "nobody names the device and its address"
}

run return
[ "$result" -eq 0 ] || fail "with MPI_ERRORS_RETURN the program ended with $result"
grep -q "^offpath: rank 0: $says failed: " "$dir/err" || fail "nobody says what failed"

run fatal
[ "$result" -ne 0 ] && [ "$result" -ne 124 ] || fail "with the default error handler the job ended with $result"
[ "$SECONDS" -lt 20 ] || fail "the job took $SECONDS s to end"
grep -q "^offpath: rank [0-9]: $says failed: " "$dir/err" || fail "nobody says what failed"
exit 0
