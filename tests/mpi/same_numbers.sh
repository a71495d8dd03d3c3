#!/usr/bin/env bash
# same_numbers.sh BUILD PROGRAM mpi|mpich: the program's communicators have the numbers that they have without the front end.
set -u
build=$1 program=$2 mpi=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
start_daemon "$dir" "$dir/daemon.log" --idle-exit 300
preload=$build/lib/liboffpath-mpi.so launch=$root/tests/mpirun.sh
[ "$mpi" = mpi ] || preload=$build/lib/liboffpath-mpi-$mpi.so launch=$root/tests/mpiexec_mpich.sh
preload=$(preload_of "$program" "$preload")
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OMPI_MCA_topo=basic
export OFFPATH_DIR=$dir OFFPATH_MIN_BYTES=0 OFFPATH_P2P=all OFFPATH_RMA=all OFFPATH_AGREE_MS=1 OMPI_MCA_osc=sm,pt2pt
numbers() { # WAY VARIABLE=VALUE...: OFFPATH=off leaves all of the front end out that acts
    local way=$1
    shift
    timeout -k 5 150 env "$@" "$launch" 3 env LD_PRELOAD="$preload" "$program" >"$dir/$way.out" 2>"$dir/$way.err" ||
        { cat "$dir/$way.out" "$dir/$way.err" >&2; fail "$way the front end the program ended with an error"; }
    grep -o 'rank [0-9]*: communicators.*' "$dir/$way.out" | sort >"$dir/$way"
    [ "$(wc -l <"$dir/$way")" -eq 3 ] || fail "$way the front end not all ranks printed their numbers"
}
numbers without OFFPATH=off
numbers with OFFPATH=on
grep -q '^offpath: one-sided: ' "$dir/with.err" || fail "the front end served no window"
diff "$dir/without" "$dir/with" >&2 || fail "the communicators' numbers differ"
end_daemon
