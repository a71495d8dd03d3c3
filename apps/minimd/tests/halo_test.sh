#!/usr/bin/env bash
# halo_test.sh BUILD OFFPATHD RANKS: ghosts that offpath's devices move give the temperature, energy and pressure of those that MPI moves: local,
# remote, and when a daemon dies on the way, everybody's or that of some ranks.
set -euo pipefail
build=$1 offpathd=$2 ranks=$3
. "$(dirname "$0")/devices.sh"

input() {  # KIND CELLS STEPS THERMO
    cat > "$work/$1.in" << INPUT
small

$([ "$1" = eam ] && echo metal || echo lj)
none
$1
1.0 1.0
$2
$3
$([ "$1" = eam ] && echo 0.001 || echo 0.005)
$([ "$1" = eam ] && echo 600 || echo 1.44)
$([ "$1" = eam ] && echo 0.0847 || echo 0.8442)
5
$([ "$1" = eam ] && echo 4.95 1.0 || echo 2.5 0.30)
$4
INPUT
}

run() {  # NAME ARGS...: a Lennard-Jones run that leaves NAME.json
    local name=$1
    shift
    "$tests/mpirun.sh" "$ranks" "${wrap[@]}" "$build/bin/minimd" -i "$work/lj.in" --json "$work/$name.json" --skin-check off "$@" > "$work/$name.log" 2>&1 ||
        { cat "$work/$name.log"; exit 1; }
}

later() {  # ENVIRONMENT KIND NAME ARGS...: the same as one of the runs of a single job
    echo "$1 -i $work/$2.in --json $work/$3.json --skin-check off ${*:4}" >> "$work/batch"
}

compare() {  # TOLERANCE EXPECTED HALO NAME...
    python3 - "$work" "$@" << 'PYTHON'
import json, sys
work, tolerance, expected, halo, *ways = sys.argv[1:]
wanted_rows = json.load(open(f"{work}/{expected}.json"))["thermo"]
assert len(wanted_rows) > 2, wanted_rows
for way in ways:
    done = json.load(open(f"{work}/{way}.json"))
    assert halo == "any" or done["halo"] == halo, (way, done["halo"])
    assert halo != "offloaded" or (done["offloaded_bytes"] > 0) == (done["ranks"] > 1), done
    for row, wanted in zip(done["thermo"], wanted_rows, strict=True):
        for key in "tup":
            if abs(row[key] - wanted[key]) > float(tolerance) * max(1.0, abs(wanted[key])):
                sys.exit(f"{way}: step {row['step']}: {key} is {row[key]}, by MPI it is {wanted[key]}")
PYTHON
}

wrap=(env)
device all
tolerance() {
    if [ "$1" = double ]; then echo 1e-9; else echo 2e-4; fi
}
checks=("lj single 1" "lj double 0" "lj double 1")
if [ -e /usr/share/lammps/potentials/Cu_u6.eam ]; then checks+=("eam double 1"); else echo "no Cu_u6.eam: EAM is left out"; fi
for check in "${checks[@]}"; do
    read -r kind precision half <<< "$check"
    input "$kind" "6 7 5" 22 11
    name=$kind-$precision-$half options="--precision $precision --half_neigh $half"
    later "" "$kind" "$name-overlapped" $options
    later "OFFPATH_DIR=$work/all" "$kind" "$name-local" $options --halo offloaded -t 2
    later "OFFPATH_DEVICES=127.0.0.1:$port OFFPATH_KEY_FILE=$work/key" "$kind" "$name-remote" $options --halo offloaded
done
later "" lj blocking --halo blocking
later "" lj polled --halo polled -t 2
"$tests/mpirun.sh" "$ranks" "$build/bin/minimd_batch" "$work/batch" > "$work/batch.log" 2>&1 || { cat "$work/batch.log"; exit 1; }
for check in "${checks[@]}"; do
    read -r kind precision half <<< "$check"
    name=$kind-$precision-$half
    compare "$(tolerance "$precision")" "$name-overlapped" offloaded "$name-local" "$name-remote"
done
compare 1e-9 lj-double-1-overlapped blocking blocking
compare 1e-9 lj-double-1-overlapped polled polled

# Without a daemon: one line, and MPI.
wrap=(env "OFFPATH_DIR=$work/nowhere")
input lj "6 7 5" 22 11
run nowhere --halo offloaded
[ "$(grep -c "^minimd: .*ghosts go by MPI" "$work/nowhere.log")" -eq 1 ]
compare 1e-9 lj-double-1-overlapped overlapped nowhere
[ "$ranks" -gt 1 ] || exit 0

# In the middle of a run, which does not end before: the daemon of all, then of every other rank.
steps=$((ranks > 2 ? 1000 : 2000))
input lj "8 8 8" $steps $((steps / 2))
wrap=(env)
run long
lose() {  # NAME
    run "$1" --halo offloaded &
    job=$!
    for _ in $(seq 1000); do
        grep -q "^0 1.44" "$work/$1.log" 2> /dev/null && break
        sleep 0.02
    done
    sleep 0.1
    kill -0 "$job"
    kill -9 "${daemons[-1]}"
    wait "${daemons[-1]}" 2> /dev/null || true
    unset 'daemons[-1]'
    wait "$job"
    [ "$(grep -c "the device is lost for .* of $ranks ranks: ghosts go by MPI" "$work/$1.log")" -eq 1 ] || { cat "$work/$1.log"; exit 1; }
}
wrap=(env "OFFPATH_DIR=$work/all")
lose lost-all
device even
device odd
wrap=(sh -c "OFFPATH_DIR=$work/\$([ \$((OMPI_COMM_WORLD_RANK % 2)) = 1 ] && echo odd || echo even) exec \"\$@\"" sh)
lose lost-odd
# Rounding tells trajectories apart after so many steps, in the last digits that are compared.
compare 1e-4 long overlapped lost-all lost-odd
