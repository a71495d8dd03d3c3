#!/usr/bin/env bash
# offpath_test.sh BUILD NODES HOSTS DEVICES: miniMD with devices as ranks of the job gives the temperature, energy and pressure of
# the hosts alone, in every way that devices can take part, at rebuild steps and between them. HOSTS and DEVICES are of a node.
set -euo pipefail
build=$1 nodes=$2 hosts=$3 devices=$4
tests=$(cd "$(dirname "$0")/../../../tests" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=passive

launch() {  # PROGRAM ARGS...
    "$tests/device_ranks/mpmd.sh" "$nodes" "$hosts" "$devices" labels "$@"
}

# All runs are one job, whose start takes longer than most of them; what they said is compared afterwards.
run() {  # NAME ARGS...: leaves NAME.json
    echo "-i $work/$1.in --json $work/$1.json --skin-check off ${*:2}" >> "$work/batch"
    cp "$work/in" "$work/$1.in"
}

compare() {  # PRECISION EVERY EXPECTED NAME...
    comparisons+=("$*")
}

input() {  # lj|eam EVERY
    local units=lj forces="2.5 0.30" dt=0.005 temperature=1.44 density=0.8442
    [ "$1" = lj ] || units=metal forces="4.95 1.00" dt=0.001 temperature=600 density=0.07041125
    cat > "$work/in" <<INPUT
small

$units        units
none          data file
$1            force
1.0 1.0       epsilon and sigma
6 7 8         unit cells
24            steps
$dt           time step
$temperature  temperature
$density      density
$2            re-neighbouring
$forces       cutoff and skin
8             thermo
INPUT
}

check() {  # PRECISION EVERY EXPECTED NAME...: their tables with that of EXPECTED, by hosts alone
    python3 - "$work" "$@" << 'PYTHON'
import json, sys
work, precision, every, expected, *ways = sys.argv[1:]
tolerance = 1e-9 if precision == "double" else 2e-4
hosts = json.load(open(f"{work}/{expected}.json"))
assert [row["step"] for row in hosts["thermo"]] == [0, 8, 16, 24], hosts
assert hosts["device_share"] == 0 and hosts["tunnelled_bytes"] == 0, hosts
for way in ways:
    done = json.load(open(f"{work}/{way}.json"))
    kind = way.split("-")[0]
    if kind == "tunnel":
        # A rank alone has nobody to send ghosts to.
        assert (done["tunnelled_bytes"] > 0) == (done["ranks"] > 1), done
    elif kind != "maybe":
        least, most = {"paper": (1, 1), "balanced": (0.05, 1), "fixed": (0.1, 1), "split": (0.05, 0.95)}[kind]
        assert least <= done["device_share"] <= most, (way, done["device_share"])
    rows = done["thermo"]
    for row, wanted in zip(rows, hosts["thermo"], strict=True):
        for key in "tup":
            difference = abs(row[key] - wanted[key])
            if difference > tolerance * max(1.0, abs(wanted[key])):
                sys.exit(f"{way}, {precision}, every {every}: step {row['step']}: {key} is {row[key]}, the hosts' is {wanted[key]}")
PYTHON
}

# Many ranks take long on few cores: what does not depend on their number is left to small jobs.
thorough=$((nodes * hosts <= 2))

comparisons=()
for each in "1 double" "3 single" "1 single" "3 double"; do
    read -r every precision <<< "$each"
    [[ $thorough = 1 || $each = "1 double" || $each = "3 single" ]] || continue
    input lj "$every"
    name=$every-$precision
    run hosts-$name --precision "$precision"
    run paper-$name --precision "$precision" --offpath paper
    run balanced-$name --precision "$precision" --offpath balanced
    compare "$precision" "$every" hosts-$name paper-$name balanced-$name
    [[ $each = "1 double" || $each = "3 single" ]] || continue
    run fixed-$name --precision "$precision" --offpath balanced --device-share 0.4 --no-device-ghosts
    run split-$name --precision "$precision" --split-boundary
    run tunnel-$name --precision "$precision" --tunnel
    compare "$precision" "$every" hosts-$name fixed-$name split-$name tunnel-$name
done

# Pairs from both of their atoms, and half lists whose ghosts get no forces.
input lj 2
for lists in "--half_neigh 0" "-gn 0"; do
    name=${lists// /}
    run hosts-$name $lists
    run fixed-$name --offpath balanced --device-share 0.4 $lists
    compare double 2 hosts-$name fixed-$name
    [ $thorough = 1 ] || continue
    run paper-$name --offpath paper $lists
    run split-$name --split-boundary $lists
    compare double 2 hosts-$name paper-$name split-$name
done

# Forces that cannot be divided, which need a device for every host.
input eam 2
if [ "$hosts" -eq "$devices" ]; then
    for precision in double single; do
        name=eam-$precision
        run hosts-$name --precision "$precision"
        run paper-$name --precision "$precision" --offpath paper
        compare "$precision" 2 hosts-$name paper-$name
        [ $thorough = 1 ] || break
        run maybe-$name --precision "$precision" --offpath balanced --device-threads 2
        run paper-full-$name --precision "$precision" --offpath paper --half_neigh 0
        compare "$precision" 2 hosts-$name maybe-$name paper-full-$name
    done
else
    if launch "$build/bin/minimd" -i "$work/in" --offpath paper > "$work/shared" 2>&1; then
        echo "--offpath with EAM on shared devices should be an error"
        exit 1
    fi
    grep -q "needs a device rank for every host rank" "$work/shared"
fi

launch "$build/bin/minimd_batch" "$work/batch" > "$work/batch.log" 2>&1 || { cat "$work/batch.log"; exit 1; }
for each in "${comparisons[@]}"; do
    read -ra words <<< "$each"
    check "${words[@]}"
done

# A device that does not find the tables which its hosts have read ends the job, and says so.
if [ "$nodes.$hosts.$devices" = 1.1.1 ]; then
    printf '#!/bin/sh\ncd / && exec %s "$@"\n' "$build/bin/minimd" > "$work/elsewhere"
    chmod +x "$work/elsewhere"
    ln -s /usr/share/lammps/potentials/Cu_u6.eam "$work/here.eam"
    if (cd "$work" && DEVICE_PROGRAM=$work/elsewhere timeout 60 "$tests/device_ranks/mpmd.sh" 1 1 1 labels "$build/bin/minimd" -i in --offpath paper --eam-file here.eam) \
            > "$work/tables" 2>&1; then
        echo "a device without tables should be an error"
        exit 1
    fi
    grep -q "a device, which reads this itself: there is no file of the EAM potential 'here.eam'" "$work/tables"
fi

if "$tests/mpirun.sh" 1 "$build/bin/minimd" -s 2 -n 1 --offpath paper > "$work/alone" 2>&1; then
    echo "--offpath without devices should be an error"
    exit 1
fi
grep -q "need devices as ranks of the job" "$work/alone"
