#!/usr/bin/env bash
# variants_test.sh BUILD openmpi|mpich DIMS RANKS...: runs every variant of halo on so many ranks, on an open and on a
# periodic domain, against a daemon of its own. All checksums of a domain must be equal.
set -u
build=$1 mpi=$2 dims=$3
shift 3
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
start_daemon "$dir" "$dir/daemon.log" --idle-exit 300

program=$build/bin/halo launch=$root/tests/mpirun.sh
preload=$build/lib/liboffpath-mpi.so
if [ "$mpi" = mpich ]; then
    program=$build/bin/halo-mpich launch=$root/tests/mpiexec_mpich.sh preload=$build/lib/liboffpath-mpi-mpich.so
fi
preload=$(preload_of "$program" "$preload")
variants=(mpi nonblocking group schedule)
[ -e "$build/lib/libhalo-target-$mpi.so" ] && variants+=(target)
size=(0 61 23 11)
for periodic in "" --periodic; do
    wanted=
    for ranks in "$@"; do
        for variant in "${variants[@]}"; do
            with=()
            # The front end joins the devices, whose regions call MPI.
            [ "$variant" = target ] && with=(env LD_PRELOAD="$preload" LD_LIBRARY_PATH="$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" OFFPATH_VERBOSE=0)
            # shellcheck disable=SC2086
            said=$(OFFPATH_DIR=$dir timeout -k 5 60 "$launch" "$ranks" "${with[@]}" "$program" --dims "$dims" --size "${size[$dims]}" \
                --steps 25 --variant "$variant" --way device $periodic --json -) || fail "$variant $periodic on $ranks ranks failed"
            sum=$(sed -n 's/.*"checksum":"\([0-9a-f]*\)".*/\1/p' <<<"$said")
            [ -n "$sum" ] || fail "$variant $periodic on $ranks ranks said: $said"
            [ "$sum" = "${wanted:=$sum}" ] || fail "$variant $periodic on $ranks ranks: $sum instead of $wanted"
        done
    done
    echo "$dims dimensions $periodic: $wanted everywhere"
done
end_daemon
