#!/usr/bin/env bash
# two_daemons.sh BUILD PROGRAM: PROGRAM on two ranks of this machine, each with a daemon of its own, as on two nodes. MPI=mpich as with run.sh.
set -u
build=$1 program=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/offpath-test.XXXXXX")
daemons=()
cleanup() {
    for daemon in "${daemons[@]}"; do kill -KILL "$daemon" 2>/dev/null; done
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
fail() {
    echo "two_daemons.sh: $*" >&2
    for log in "$dir"/*.log; do sed "s|^|  $(basename "$log"): |" "$log" >&2; done
    exit 1
}
for i in 0 1; do
    mkdir "$dir/$i"
    mkfifo "$dir/ready"
    "$build/bin/offpathd" --dir "$dir/$i" --name "node$i" --ready-fd 3 --log-file "$dir/$i.log" --idle-exit 60 3<>"$dir/ready" >"$dir/$i.out" 2>&1 &
    daemons+=($!)
    exec 4<>"$dir/ready"
    read -r -n 1 -t 20 _ <&4 || fail "daemon $i was not ready within 20 s"
    exec 4<&-
    rm -f "$dir/ready"
done
preload=$build/lib/liboffpath-mpi.so launch=$root/tests/mpirun.sh
case ${MPI:-openmpi} in mpich | abi) preload=$build/lib/liboffpath-mpi-$MPI.so launch=$root/tests/mpiexec_mpich.sh ;; esac
for runtime in $(ldd "$program" | awk '/lib(a|t)san/ { print $3 }'); do preload="$runtime $preload"; done
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OFFPATH_MIN_BYTES=4096 OFFPATH_OPS=all OFFPATH_P2P=all OFFPATH_RMA=all
# shellcheck disable=SC2016
timeout -k 5 100 "$launch" 2 sh -c 'export OFFPATH_DIR=$1/${OMPI_COMM_WORLD_RANK:-$PMI_RANK} LD_PRELOAD="$2"; exec "$3"' sh "$dir" "$preload" "$program" >"$dir/job.log" 2>&1
result=$?
[ "$result" -eq 0 ] || fail "$(basename "$program") ended with $result"
cat "$dir/job.log"
