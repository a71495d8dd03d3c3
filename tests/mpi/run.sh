#!/usr/bin/env bash
# run.sh BUILD RANKS PROGRAM [ARGS...]: runs PROGRAM on RANKS ranks with the MPI front end loaded and a daemon of its own, and checks that operations
# were offloaded and that nothing is left behind.
#   MIN_BYTES (default 0: everything goes to the device; "default": the library's own) and OPS (default all) are the front end's settings.
#   MPI=mpich or MPI=abi: PROGRAM was built with MPICH, or with the standard's ABI.
#   ATTACH=remote: attaches to the daemon over TCP, as if the device had an operating system of its own.
#   DAEMON_OPTIONS: more options of the daemon, separated by spaces.
#   EXPECT=TEXT: a regular expression for the line of the summary that must be there, in place of that of the collectives.
#   EXPECT_LOG=TEXT: a regular expression for a line of the daemon's log.
#   LIMIT_S (default 150): seconds that the program may take.
#   EXPECT_END=TEXT: the program ends with an error, and a line of offpath's is like this regular expression. Nothing else is checked.
#   EXPECT_IDLE=1: the program offloads nothing, and no summary is expected.
set -u
build=$1 ranks=$2 program=$3
shift 3
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"

read -r -a options <<<"${DAEMON_OPTIONS:-}"
if [ "${ATTACH:-local}" = remote ]; then
    listen_options
    options+=("${listen[@]}")
fi
start_daemon "$dir" "$dir/daemon.log" "${options[@]}" --idle-exit 300
[ "${ATTACH:-local}" = local ] || use_device "$dir"
preload=$build/lib/liboffpath-mpi.so launch=$root/tests/mpirun.sh
case ${MPI:-openmpi} in mpich | abi) preload=$build/lib/liboffpath-mpi-$MPI.so launch=$root/tests/mpiexec_mpich.sh ;; esac
preload=$(preload_of "$program" "$preload")

export OFFPATH_DIR=$dir OFFPATH_MIN_BYTES=${MIN_BYTES:-0} OFFPATH_OPS=${OPS:-all} OFFPATH_VERBOSE=1
[ "$OFFPATH_MIN_BYTES" = default ] && unset OFFPATH_MIN_BYTES
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
# Open MPI 4.1's other topology component hangs now and then when distributed graphs follow each other.
export OMPI_MCA_topo=basic
timeout -k 5 "${LIMIT_S:-150}" "$launch" "$ranks" env LD_PRELOAD="$preload" "$program" "$@" >"$dir/out" 2>"$dir/err"
result=$?
cat "$dir/out"
cat "$dir/err" >&2
[ "$result" -eq 77 ] && exit 77
if [ -n "${EXPECT_END:-}" ]; then
    [ "$result" -ne 0 ] && [ "$result" -ne 124 ] || fail "$(basename "$program") on $ranks ranks ended with $result"
    grep -Eq "^offpath: $EXPECT_END" "$dir/err" || fail "no line of offpath's is like '$EXPECT_END'"
    exit 0
fi
[ "$result" -eq 0 ] || fail "$(basename "$program") on $ranks ranks ended with $result"

# With NO_LEAKS=1: MPICH says so where a type of the program, or one that was made of it, is not freed at its end.
[ -n "${NO_LEAKS:-}" ] && grep -q 'leaked handle' "$dir/err" && fail "MPICH's list of handles that were not freed is not empty"

summary=$(grep -Ec "^offpath: ${EXPECT:-offloaded [1-9][0-9]* of }" "$dir/err")
if [ "$ranks" -eq 1 ] || [ -n "${EXPECT_IDLE:-}" ]; then
    [ "$summary" -eq 0 ] || fail "something was offloaded where nothing can be"
else
    [ "$summary" -eq 1 ] || fail "the summary does not say that something was offloaded"
fi

end_daemon
if [ -n "${EXPECT_LOG:-}" ]; then
    grep -Eq "$EXPECT_LOG" "$dir/daemon.log" || fail "the daemon's log has no line like '$EXPECT_LOG'"
fi
