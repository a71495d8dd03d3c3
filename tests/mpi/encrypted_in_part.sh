#!/usr/bin/env bash
# encrypted_in_part.sh BUILD PROGRAM: of two daemons of a job only one encrypts. Their logs say so, and the job is right, on the host's MPI.
set -u
build=$1 program=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
start_daemon "$dir/0" "$dir/0.log" --name node0 --encrypt
start_daemon "$dir/1" "$dir/1.log" --name node1
preload=$(preload_of "$program" "$build/lib/liboffpath-mpi.so")
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OFFPATH_MIN_BYTES=0 OFFPATH_OPS=all
# shellcheck disable=SC2016
timeout -k 5 60 "$root/tests/mpirun.sh" 2 sh -c 'export OFFPATH_DIR=$1/$OMPI_COMM_WORLD_RANK LD_PRELOAD="$2"; shift 2; exec "$@"' \
    sh "$dir" "$preload" "$program" >"$dir/job.log" 2>&1 || fail "the job ended with $?"
for node in 0 1; do
    grep -q "cannot connect: one side encrypts and the other one does not; .*--encrypt, OFFPATH_ENCRYPT=1" "$dir/$node.log" ||
        fail "the daemon of node $node does not say why"
done
