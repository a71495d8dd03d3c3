#!/usr/bin/env bash
# runtime_test.sh BUILD RANKS: miniMD with devices of the runtime gives the temperature, energy and pressure of the hosts alone: local,
# remote, and when the daemon dies on the way.
set -euo pipefail
build=$1 ranks=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill -9 "$daemon" 2> /dev/null || true; rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=passive

start_daemon() {
    rm -f "$work"/*.port
    "$build/bin/offpathd" --dir "$work" --listen 127.0.0.1:0 --key-file "$work/key" --log-file "$work/daemon.log" &
    daemon=$!
    for _ in $(seq 200); do
        compgen -G "$work/*.port" > /dev/null && break
        sleep 0.05
    done
    port=$(cat "$work"/*.port)
}

input() {  # CELLS STEPS THERMO
    cat > "$work/in" <<INPUT
Lennard-Jones, small

lj            units
none          data file
lj            force
1.0 1.0       epsilon and sigma
$1 $1 $1      unit cells
$2            steps
0.005         time step
1.44          temperature
0.8442        density
3             re-neighbouring
2.5 0.30      cutoff and skin
$3            thermo
INPUT
}

run() {  # NAME ARGS...: leaves NAME.json
    local name=$1
    shift
    "$here/../mpirun.sh" "$ranks" "$build/bin/minimd" -i "$work/in" --json "$work/$name.json" --skin-check off "$@" > "$work/$name.log" 2>&1 ||
        { cat "$work/$name.log"; exit 1; }
}

compare() {  # TOLERANCE EXPECTED NAME...
    python3 - "$work" "$@" << 'PYTHON'
import json, sys
work, tolerance, expected, *ways = sys.argv[1:]
wanted_rows = json.load(open(f"{work}/{expected}.json"))["thermo"]
assert len(wanted_rows) > 2, wanted_rows
for way in ways:
    rows = json.load(open(f"{work}/{way}.json"))["thermo"]
    for row, wanted in zip(rows, wanted_rows, strict=True):
        for key in "tup":
            if abs(row[key] - wanted[key]) > float(tolerance) * max(1.0, abs(wanted[key])):
                sys.exit(f"{way}: step {row['step']}: {key} is {row[key]}, the hosts' is {wanted[key]}")
PYTHON
}

(umask 077 && head -c 32 /dev/urandom > "$work/key")
start_daemon
local_device="OFFPATH_DIR=$work"
remote_device="OFFPATH_DEVICES=127.0.0.1:$port OFFPATH_KEY_FILE=$work/key"
input 7 24 8
for precision in double single; do
    run hosts --precision $precision
    names=
    for attach in local remote; do
        device=${attach}_device
        ways=("balanced" "paper" "balanced --device-share 0.4 --device-threads 2" "paper --half_neigh 0")
        [ $precision = double ] || ways=("balanced")
        for way in "${ways[@]}"; do
            name="$attach-${way// /-}"
            names="$names $name"
            export ${!device}
            run "$name" --precision $precision --device-kind runtime --offpath $way
            unset OFFPATH_DIR OFFPATH_DEVICES OFFPATH_KEY_FILE
            if grep "device is lost" "$work/$name.log"; then exit 1; fi
        done
    done
    grep -q "minimd_forces" "$work/daemon.log"
    if [ "$precision" = double ]; then compare 1e-9 hosts $names; else compare 2e-4 hosts $names; fi
done

# In the middle of a run, which does not end before the daemon.
input 8 300 150
run long
loads=$(grep -c "minimd_forces" "$work/daemon.log")
export $local_device
run lost --device-kind runtime --offpath balanced --device-share 0.9 --device-slowness 30 &
job=$!
for _ in $(seq 400); do
    [ "$(grep -c "minimd_forces" "$work/daemon.log")" -gt "$loads" ] && break
    sleep 0.02
done
sleep 0.7
kill -0 "$job"
kill -9 "$daemon"
wait "$daemon" 2> /dev/null || true
daemon=
wait "$job"
[ "$(grep -c "device is lost" "$work/lost.log")" -eq "$ranks" ]
compare 1e-6 long lost

# Without a daemon.
if "$here/../mpirun.sh" "$ranks" "$build/bin/minimd" -s 4 -n 1 --device-kind runtime --offpath paper > "$work/alone.log" 2>&1; then
    echo "--device-kind runtime without a daemon should be an error"
    exit 1
fi
grep -q "no device answers" "$work/alone.log"
