#!/usr/bin/env bash
# loss_sweep.sh BUILD PROGRAM FIRST LAST STEP: runs PROGRAM, which verifies collectives, again and again on four ranks with two daemons. In each run a
# daemon is killed in another call: FIRST, FIRST + STEP and so on, before LAST. A run is right, or says why it ends. No result is wrong.
set -u
build=$1 program=$2 first=$3 last=$4 step=$5
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
right=0 explained=0
for ((call = first; call < last; call += step)); do
    # Another victim, and another moment of the call, in each run.
    at=$((call % 2 * 3)):$call:$((call * 379 % 1000))
    if KILL_AT=$at MIN_BYTES=0 OPS=all,blocking RANKS=4 DAEMONS=2 LIMIT_S=60 "$here/several_daemons.sh" "$build" "$program" >"$out" 2>&1; then
        right=$((right + 1))
    elif grep -q FAILED "$out" || ! grep -q 'it cannot be run again' "$out"; then
        echo "loss_sweep.sh: KILL_AT=$at: a wrong result, or an end without a reason:"
        cat "$out"
        exit 1
    else
        explained=$((explained + 1))
    fi
done
echo "loss_sweep.sh: $(basename "$program"): $right runs were right, and $explained ended with a reason"
[ "$right" -gt 0 ]
