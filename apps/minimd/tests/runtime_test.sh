#!/usr/bin/env bash
# runtime_test.sh BUILD OFFPATHD RANKS: miniMD with devices of the runtime gives the temperature, energy and pressure of the hosts alone: local,
# remote, and when a daemon dies on the way, everybody's or that of some ranks.
set -euo pipefail
build=$1 offpathd=$2 ranks=$3
. "$(dirname "$0")/devices.sh"

input() {  # CELLS STEPS THERMO EVERY [eam]
    local force=${5:-lj} units=lj cutoff="2.5 0.30" dt=0.005 temperature=1.44 density=0.8442
    [ "$force" = lj ] || units=metal cutoff="4.95 1.00" dt=0.001 temperature=600 density=0.07041125
    cat > "$work/in" <<INPUT
small

$units        units
none          data file
$force        force
1.0 1.0       epsilon and sigma
$1 $1 $1      unit cells
$2            steps
$dt           time step
$temperature  temperature
$density      density
$4            re-neighbouring
$cutoff       cutoff and skin
$3            thermo
INPUT
}

run() {  # NAME ARGS...: leaves NAME.json
    local name=$1
    shift
    "$tests/mpirun.sh" "$ranks" "${wrap[@]}" "$build/bin/minimd" -i "$work/in" --json "$work/$name.json" --skin-check off "$@" > "$work/$name.log" 2>&1 ||
        { cat "$work/$name.log"; exit 1; }
}

compare() {  # TOLERANCE EXPECTED NAME...
    python3 - "$work" "$@" << 'PYTHON'
import json, sys
work, tolerance, expected, *ways = sys.argv[1:]
wanted_rows = json.load(open(f"{work}/{expected}.json"))["thermo"]
assert len(wanted_rows) > 2, wanted_rows
for way in ways:
    done = json.load(open(f"{work}/{way}.json"))
    assert "halo-offloaded" not in way or done["halo"] == "offloaded", (way, done["halo"])
    assert "paper" not in way or done["device_share"] == 1, (way, done["device_share"])
    rows = done["thermo"]
    for row, wanted in zip(rows, wanted_rows, strict=True):
        for key in "tup":
            if abs(row[key] - wanted[key]) > float(tolerance) * max(1.0, abs(wanted[key])):
                sys.exit(f"{way}: step {row['step']}: {key} is {row[key]}, the hosts' is {wanted[key]}")
PYTHON
}

device all
wrap=(env)
plain=(env)
local_device=(env "OFFPATH_DIR=$work/all")
remote_device=(env "OFFPATH_DEVICES=127.0.0.1:$port" "OFFPATH_KEY_FILE=$work/key")

# All runs of check() are one job, whose start takes longer than most of them; what they said is compared afterwards.
checks=0 comparisons=()
check() {  # PRECISION HOSTS_ARGS WAY...: both attachments, each WAY being arguments
    local precision=$1 lists=$2 names= way name input device
    shift 2
    checks=$((checks + 1))
    input=$work/$checks.in
    cp "$work/in" "$input"
    later() {  # NAME ENVIRONMENT ARGS...
        echo "${*:2} -i $input --json $work/$1.json --skin-check off --precision $precision $lists" >> "$work/batch"
    }
    later "$checks-hosts"
    for attach in local remote; do
        declare -n device=${attach}_device
        for way in "$@"; do
            name="$checks-$attach-${way// /-}"
            names="$names $name"
            later "$name" "${device[@]:1}" --device-kind runtime --offpath $way
        done
    done
    comparisons+=("$([ "$precision" = double ] && echo 1e-9 || echo 2e-4) $checks-hosts $names")
}

# Many ranks take long on few cores: what does not depend on their number is left to small jobs.
input 7 24 8 1
check double "" paper "balanced --device-share 0.4" "paper --halo offloaded"
input 7 24 8 3
if [ "$ranks" -le 3 ]; then
    check double "" paper balanced "balanced --device-share 0.4 --device-threads 2" "paper -t 2 --device-slowness 2"
    check single "" balanced
    check double "--half_neigh 0" "paper --halo offloaded"
fi
check double "-gn 0" paper

# Forces that are not divided.
input 7 24 8 1 eam
check double "" paper
input 7 24 8 3 eam
if [ "$ranks" -le 3 ]; then
    check double "" balanced "paper -t 2 --device-threads 2 --device-slowness 2"
    check double "" "balanced --device-share 0.4 -t 2" "balanced --device-share 0.6 --device-threads 2 --halo offloaded"
    check single "" paper "balanced --device-share 0.4"
    check double "--half_neigh 0" "paper --halo offloaded"
    check double "-gn 0" paper
fi
"$tests/mpirun.sh" "$ranks" "$build/bin/minimd_batch" "$work/batch" > "$work/batch.log" 2>&1 || { cat "$work/batch.log"; exit 1; }
if grep "device is lost" "$work/batch.log"; then exit 1; fi
for each in "${comparisons[@]}"; do
    compare $each
done
grep -q "minimd_forces" "$work/all.log"
grep -q "minimd_eam_forces" "$work/all.log"

# In the middle of a run, which does not end before: the daemon of all, then of every other rank.
lose() {  # NAME LOG LOSERS ARGS...: the latest daemon, whose log is LOG, or with only=kernels the processes that compute for it
    local name=$1 log=$2 losers=$3 loads
    shift 3
    loads=$(grep -c "minimd_.*forces" "$work/$log" || true)
    run "$name" --device-kind runtime "$@" &
    job=$!
    for _ in $(seq 1000); do
        [ "$(grep -c "minimd_.*forces" "$work/$log")" -ge $((loads + losers)) ] && break
        sleep 0.02
    done
    sleep 0.4
    kill -0 "$job"
    if [ "${only:-}" = kernels ]; then
        pgrep -P "${daemons[-1]}" | xargs kill -9
    else
        kill -9 "${daemons[-1]}"
        wait "${daemons[-1]}" 2> /dev/null || true
        unset 'daemons[-1]'
    fi
    wait "$job"
    [ "$(grep -c "device is lost: the host" "$work/$name.log")" -eq "$losers" ] || { cat "$work/$name.log"; exit 1; }
}
input 8 150 75 1 eam
wrap=("${plain[@]}")
run long-eam
wrap=("${local_device[@]}")
only=kernels lose lost-kernels all.log "$ranks" --offpath paper --device-slowness 40
only=kernels lose lost-parts all.log "$ranks" --offpath balanced --device-share 0.6 --device-slowness 60
compare 1e-6 long-eam lost-kernels lost-parts
input 8 300 150 3
wrap=("${plain[@]}")
run long
wrap=("${local_device[@]}")
lose lost all.log "$ranks" --offpath balanced --device-share 0.9 --device-slowness 100
compare 1e-6 long lost

if [ "$ranks" -gt 1 ]; then
    input 8 150 75 1
    wrap=("${plain[@]}")
    run long
    device even
    device odd
    wrap=(sh -c "OFFPATH_DIR=$work/\$([ \$((OMPI_COMM_WORLD_RANK % 2)) = 1 ] && echo odd || echo even) exec \"\$@\"" sh)
    lose lost-odd odd.log $((ranks / 2)) --offpath paper --device-slowness 60
    compare 1e-6 long lost-odd
    device odd
    lose lost-ghosts odd.log $((ranks / 2)) --offpath paper --device-slowness 60 --halo offloaded
    grep -q "ghosts go by MPI from now on" "$work/lost-ghosts.log"
    compare 1e-6 long lost-ghosts
    input 8 150 75 1 eam
    device odd
    lose lost-odd-eam odd.log $((ranks / 2)) --offpath paper --device-slowness 40
    compare 1e-6 long-eam lost-odd-eam
fi

# Without a daemon.
if "$tests/mpirun.sh" "$ranks" "$build/bin/minimd" -s 4 -n 1 --device-kind runtime --offpath paper > "$work/alone.log" 2>&1; then
    echo "--device-kind runtime without a daemon should be an error"
    exit 1
fi
grep -q "no device answers" "$work/alone.log"
