#!/usr/bin/env bash
# run.sh BUILD PES PROGRAM ARGS...: runs PROGRAM on PES processing elements under oshrun, with a directory for daemons of its own.
#   ATTACH=remote: over TCP, as if the device had an operating system of its own.
#   FAILS=TEXT: the program must end with a non-zero code and print what the regular expression TEXT matches.
#   LINES_OF_OURS=N: the library must print this many lines.
#   ADDRESS_SPACE=KIB: the address space of each PE.
#   EXITS=CODE: the program must end with this code.
set -u
build=$1 pes=$2 program=$3
shift 3
. "$(dirname "$0")/../support/daemons.sh"

# Daemons that PEs start end with this script. They must not end before their first PE attaches.
at_end() {
    local file
    for file in "$dir"/*.pid; do [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null; done
}
export OFFPATH_DIR=$dir OFFPATH_IDLE_EXIT=60
if [ "${ATTACH:-local}" = remote ]; then
    listen_options
    start_daemon "$dir" "$dir/daemon.log" "${listen[@]}"
    use_device "$dir"
fi
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
[ -n "${ADDRESS_SPACE:-}" ] && ulimit -v "$ADDRESS_SPACE"
[ -z "${RESTING_YIELD:-}" ] || export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD }$RESTING_YIELD"
timeout -k 5 150 "$build/bin/oshrun" -n "$pes" "$program" "$@" >"$dir/out" 2>"$dir/err"
result=$?
cat "$dir/out"
cat "$dir/err" >&2
[ "$result" -eq 77 ] && exit 77
if [ -n "${FAILS:-}" ]; then
    [ "$result" -ne 0 ] && [ "$result" -ne 124 ] || fail "$(basename "$program") ended with $result instead of failing"
    grep -Eq "$FAILS" "$dir/err" || fail "nothing says: $FAILS"
    lines=$(grep -c '^offpath: ' "$dir/err")
    [ "$lines" -eq "${LINES_OF_OURS:-$lines}" ] || fail "$lines lines of the library instead of $LINES_OF_OURS"
    exit 0
fi
[ "$result" -eq "${EXITS:-0}" ] || fail "$(basename "$program") on $pes PEs ended with $result"
