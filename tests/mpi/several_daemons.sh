#!/usr/bin/env bash
# several_daemons.sh BUILD PROGRAM ARGS...: runs PROGRAM on RANKS ranks (2) of this machine, with DAEMONS daemons (2) that divide them among themselves,
# as on so many nodes, for at most LIMIT_S seconds (100). MPI=mpich and ATTACH=remote as in run.sh. SAYS: a regular expression for a line of
# offpath's; SAYS_NOT: for one that must not be there.
set -u
build=$1 program=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
ranks=${RANKS:-2} daemons_wanted=${DAEMONS:-2}
[ "${ATTACH:-local}" = local ] || listen_options
for ((i = 0; i < daemons_wanted; ++i)); do
    start_daemon "$dir/$i" "$dir/$i.log" --name "node$i" "${listen[@]}" --idle-exit 60
done
preload=$build/lib/liboffpath-mpi.so launch=$root/tests/mpirun.sh
case ${MPI:-openmpi} in mpich | abi) preload=$build/lib/liboffpath-mpi-$MPI.so launch=$root/tests/mpiexec_mpich.sh ;; esac
preload=$(preload_of "$program" "$preload")
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OFFPATH_MIN_BYTES=${MIN_BYTES:-4096} OFFPATH_OPS=${OPS:-all} OFFPATH_P2P=${P2P:-all} OFFPATH_RMA=all
[ "${ATTACH:-local}" = local ] || export OFFPATH_KEY_FILE=$dir/key
# shellcheck disable=SC2016
timeout -k 5 "${LIMIT_S:-100}" "$launch" "$ranks" sh -c 'export OFFPATH_DIR=$1/$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} * $2 / $3)) LD_PRELOAD="$4"
    [ -z "${OFFPATH_KEY_FILE:-}" ] || export OFFPATH_DEVICES=127.0.0.1:$(cat "$OFFPATH_DIR"/*.port); shift 4; exec "$@"' \
    sh "$dir" "$daemons_wanted" "$ranks" "$preload" "$program" "$@" >"$dir/job.log" 2>&1
result=$?
[ "$result" -eq 0 ] || [ "$result" -eq 77 ] || fail "$(basename "$program") ended with $result"
cat "$dir/job.log"
[ -z "${SAYS:-}" ] || grep -Eq "^offpath: $SAYS" "$dir/job.log" || fail "no line of offpath's is like '$SAYS'"
[ -z "${SAYS_NOT:-}" ] || ! grep -Eq "^offpath: .*$SAYS_NOT" "$dir/job.log" || fail "a line of offpath's is like '$SAYS_NOT'"
[ "$result" -ne 77 ] || exit 77
