#!/usr/bin/env bash
# target_test.sh BUILD openmpi|mpich: --variant target gives the results of plain MPI where blocks are one or two cells thin, and on devices with
# an operating system of their own, and where it changes from host to device and back between steps. Where its regions cannot run, or cannot call MPI, it says so.
set -u
build=$1 mpi=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
program=$build/bin/halo launch=$root/tests/mpirun.sh preload=$build/lib/liboffpath-mpi.so
if [ "$mpi" = mpich ]; then
    program=$build/bin/halo-mpich launch=$root/tests/mpiexec_mpich.sh preload=$build/lib/liboffpath-mpi-mpich.so
fi
export OFFPATH_VERBOSE=0
plugins=(LD_LIBRARY_PATH="$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")

checksum() {  # RANKS VARIANT ENVIRONMENT... -- ARGS...
    local ranks=$1 variant=$2 with=() said
    shift 2
    while [ "$1" != -- ]; do with+=("$1") && shift; done
    shift
    said=$(timeout -k 5 60 "$launch" "$ranks" env "${with[@]}" "$program" --variant "$variant" --steps "$steps" --json - "$@") || return 1
    [ "$variant" = mpi ] || grep -Eq "$keys" <<<"$said" || fail "'$said' has no match for $keys"
    sed -n 's/.*"checksum":"\([0-9a-f]*\)".*/\1/p' <<<"$said"
}

steps=9 keys=   # of each run; what the JSON of target must match
compare() {  # RANKS ARGS...
    local ranks=$1 wanted found
    shift
    wanted=$(checksum "$ranks" mpi OFFPATH=off -- "$@") || fail "mpi on $ranks ranks, $*: failed"
    found=$(checksum "$ranks" target LD_PRELOAD="$preload" "${plugins[@]}" -- "$@") || fail "target on $ranks ranks, $*: failed"
    [ -n "$found" ] && [ "$found" = "$wanted" ] || fail "target on $ranks ranks, $*: '$found' instead of '$wanted'"
}

refuses() {  # WORDS ENVIRONMENT...
    local wanted=$1
    shift
    timeout -k 5 60 "$launch" 2 env "$@" "$program" --variant target --size 16 >"$dir/refused.log" 2>&1 && fail "it should be refused: $wanted"
    grep -q -- "halo: --variant target: $wanted" "$dir/refused.log" || fail "it does not say: $wanted"
}

refuses "no device runs target regions on every node" OFFPATH_DIR="$dir/nowhere" LD_PRELOAD="$preload" "${plugins[@]}"
start_daemon "$dir/s" "$dir/daemon.log"
export OFFPATH_DIR=$dir/s
refuses "target regions cannot call MPI; start the program with offpath run" "${plugins[@]}"
keys='"looks":0.*"way":"device"'
compare 5 --dims 1 --size 5 --periodic --way device
compare 5 --dims 2 --size 7 --way device
compare 8 --dims 3 --size 3 --periodic --way device
keys='"looks":0.*"way":"host"'
compare 3 --dims 2 --size 7 --way host
# Two looks: after the second one, data has moved from the host to the device and back within the steps that count.
steps=230 keys='"looks":2.*"way":"(host|device)"'
compare 3 --dims 3 --size 6
compare 2 --dims 1 --size 9 --periodic
steps=9 keys='"way":"device"'
end_daemon
mkdir -p "$dir/copy/bin" && cp "$program" "$dir/copy/bin"
program=$dir/copy/bin/$(basename "$program") refuses "this halo was built without target regions, for which CMake needs clang 16"

(umask 077 && head -c 32 /dev/urandom >"$dir/key")
start_daemon "$dir/r" "$dir/daemon.log" --listen 127.0.0.1:0 --key-fd 9 --allow-images 9< <(cat "$dir/key")
unset OFFPATH_DIR
use_device "$dir/r"
compare 3 --dims 2 --size 40 --periodic --way device
end_daemon
