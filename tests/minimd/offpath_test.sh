#!/usr/bin/env bash
# offpath_test.sh BUILD NODES HOSTS DEVICES: miniMD with devices as ranks of the job gives the temperature, energy and pressure of
# the hosts alone, in every way that devices can take part, at rebuild steps and between them. HOSTS and DEVICES are of a node.
set -euo pipefail
build=$1 nodes=$2 hosts=$3 devices=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=passive

run() {  # NAME ARGS...: leaves NAME.json
    local name=$1
    shift
    "$here/../device_ranks/mpmd.sh" "$nodes" "$hosts" "$devices" labels "$build/bin/minimd" -i "$work/in" --json "$work/$name.json" \
        --skin-check off "$@" > "$work/$name.log" 2>&1 || { cat "$work/$name.log"; exit 1; }
}

for every in 1 3; do
    sed "s/^EVERY /$every /" > "$work/in" <<'INPUT'
Lennard-Jones, small

lj            units
none          data file
lj            force
1.0 1.0       epsilon and sigma
6 7 8         unit cells
24            steps
0.005         time step
1.44          temperature
0.8442        density
EVERY         re-neighbouring
2.5 0.30      cutoff and skin
8             thermo
INPUT
    for precision in double single; do
        run hosts --precision "$precision"
        run paper --precision "$precision" --offpath paper
        run balanced --precision "$precision" --offpath balanced
        run fixed --precision "$precision" --offpath balanced --device-share 0.4 --no-device-ghosts
        run split --precision "$precision" --split-boundary
        run tunnel --precision "$precision" --tunnel
        python3 - "$work" "$precision" "$every" paper balanced fixed split tunnel << 'PYTHON'
import json, sys
work, precision, every, *ways = sys.argv[1:]
tolerance = 1e-9 if precision == "double" else 2e-4
expected = json.load(open(f"{work}/hosts.json"))["thermo"]
assert [row["step"] for row in expected] == [0, 8, 16, 24], expected
hosts = json.load(open(f"{work}/hosts.json"))
assert hosts["device_share"] == 0 and hosts["tunnelled_bytes"] == 0, hosts
for way in ways:
    done = json.load(open(f"{work}/{way}.json"))
    if way == "tunnel":
        # A rank alone has nobody to send ghosts to.
        assert (done["tunnelled_bytes"] > 0) == (done["ranks"] > 1), done
    else:
        least, most = {"paper": (1, 1), "balanced": (0.05, 1), "fixed": (0.1, 1), "split": (0.05, 0.95)}[way]
        assert least <= done["device_share"] <= most, (way, done["device_share"])
    rows = done["thermo"]
    for row, wanted in zip(rows, expected, strict=True):
        for key in "tup":
            difference = abs(row[key] - wanted[key])
            if difference > tolerance * max(1.0, abs(wanted[key])):
                sys.exit(f"{way}, {precision}, every {every}: step {row['step']}: {key} is {row[key]}, the hosts' is {wanted[key]}")
PYTHON
    done
done
if "$here/../mpirun.sh" 1 "$build/bin/minimd" -s 2 -n 1 --offpath paper > "$work/alone" 2>&1; then
    echo "--offpath without devices should be an error"
    exit 1
fi
grep -q "need devices as ranks of the job" "$work/alone"
