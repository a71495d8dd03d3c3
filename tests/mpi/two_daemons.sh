#!/usr/bin/env bash
# two_daemons.sh BUILD PROGRAM: runs PROGRAM on two ranks of this machine, each with a daemon of its own, as on two nodes. MPI=mpich as in run.sh.
set -u
build=$1 program=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
for i in 0 1; do
    start_daemon "$dir/$i" "$dir/$i.log" --name "node$i" --idle-exit 60
done
preload=$build/lib/liboffpath-mpi.so launch=$root/tests/mpirun.sh
case ${MPI:-openmpi} in mpich | abi) preload=$build/lib/liboffpath-mpi-$MPI.so launch=$root/tests/mpiexec_mpich.sh ;; esac
preload=$(preload_of "$program" "$preload")
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OFFPATH_MIN_BYTES=4096 OFFPATH_OPS=${OPS:-all} OFFPATH_P2P=all OFFPATH_RMA=all
# shellcheck disable=SC2016
timeout -k 5 100 "$launch" 2 sh -c 'export OFFPATH_DIR=$1/${OMPI_COMM_WORLD_RANK:-$PMI_RANK} LD_PRELOAD="$2"; shift 2; exec "$@"' sh "$dir" "$preload" "$program" "$@" >"$dir/job.log" 2>&1
result=$?
[ "$result" -eq 0 ] || fail "$(basename "$program") ended with $result"
cat "$dir/job.log"
