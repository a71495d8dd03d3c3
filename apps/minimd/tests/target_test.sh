#!/usr/bin/env bash
# target_test.sh BUILD OFFPATHD RANKS: miniMD with forces in OpenMP target regions gives the tables of the hosts alone, on local and on remote
# devices, and exactly those of the same device's kernels over the runtime. Without a device, or without the library, it says so.
set -euo pipefail
build=$1 offpathd=$2 ranks=$3
. "$(dirname "$0")/devices.sh"
[ -e "$build/lib/libminimd-target.so" ] || { echo "built without target regions"; exit 77; }
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

input() {  # lj|eam
    local units=lj cutoff="2.5 0.30" dt=0.005 temperature=1.44 density=0.8442
    [ "$1" = lj ] || units=metal cutoff="4.95 1.00" dt=0.001 temperature=600 density=0.07041125
    cat > "$work/$1.in" <<INPUT
small

$units        units
none          data file
$1            force
1.0 1.0       epsilon and sigma
7 7 7         unit cells
24            steps
$dt           time step
$temperature  temperature
$density      density
3             re-neighbouring
$cutoff       cutoff and skin
8             thermo
INPUT
}
input lj
input eam

# All runs with one kind of device are one job; libomptarget keeps the device that it has found.
ways=("lj --offpath paper" "lj --offpath balanced --device-share 0.4 --device-threads 2" "lj --offpath paper -gn 0 -t 2"
    "lj --offpath paper --half_neigh 0 --precision single" "eam --offpath paper" "eam --offpath balanced --device-share 0.4" "eam --offpath paper -gn 0 --device-threads 2" "eam --offpath paper --precision single")
preload=()
batch() {  # NAME FLAGS: what each way's table is, in NAME-0.json and so on
    local name=$1 at force rest
    : > "$work/$name.batch"
    for at in "${!ways[@]}"; do
        read -r force rest <<< "${ways[at]}"
        [ "$name" != hosts ] || rest=$(sed -E 's/--offpath [a-z]+|--device-[a-z]+ [0-9.]+//g' <<< "$rest")
        echo "-i $work/$force.in --json $work/$name-$at.json --skin-check off $rest ${*:2}" >> "$work/$name.batch"
    done
    timeout 150 "$tests/mpirun.sh" "$ranks" "${preload[@]}" "$build/bin/minimd_batch" "$work/$name.batch" > "$work/$name.log" 2>&1 || fail "$(cat "$work/$name.log")"
    if grep "device is lost" "$work/$name.log"; then exit 1; fi
}

batch hosts
device all
export OFFPATH_DIR=$work/all
# What cannot run on a device is then an error.
export OMP_TARGET_OFFLOAD=MANDATORY
batch local --device-kind openmp
# With the front end, positions, lists and forces are memory that the device shares. It leaves jobs of one rank alone.
preload=(env LD_PRELOAD="$build/lib/liboffpath-mpi.so${RESTING_YIELD:+ $RESTING_YIELD}" OFFPATH_TARGET_REPORT=1)
batch shared --device-kind openmp
preload=()
[ "$ranks" = 1 ] || grep "bytes shared instead" "$work/shared.log" |
    awk '{ copied += $4 + $9; shared += $12 } END { exit !(NR > 0 && shared > 10 * copied) }' || fail "more than a tenth is copied: $(grep bytes "$work/shared.log")"
batch runtime --device-kind runtime
(unset OFFPATH_DIR && OFFPATH_DEVICES=127.0.0.1:$port OFFPATH_KEY_FILE=$work/key batch remote --device-kind openmp)
python3 - "$work" "${#ways[@]}" "${ways[@]}" <<'PYTHON'
import json, sys
work, count, *ways = sys.argv[1:]
for at, way in enumerate(ways):
    table = {name: json.load(open(f"{work}/{name}-{at}.json"))["thermo"] for name in ("hosts", "local", "remote", "runtime", "shared")}
    assert [row["step"] for row in table["hosts"]] == [0, 8, 16, 24], table
    assert table["local"] == table["remote"] == table["shared"], way
    # With one order of sums, which for one thread the lists give.
    if "threads" not in way:
        assert table["local"] == table["runtime"], way
    tolerance = 2e-4 if "single" in way else 1e-9
    for row, wanted in zip(table["local"], table["hosts"], strict=True):
        for key in "tup":
            assert abs(row[key] - wanted[key]) <= tolerance * max(1.0, abs(wanted[key])), (way, row, wanted)
PYTHON

# The device's process ends in the middle of a run: the job ends, and says why.
sed -i 's/^24 .*/100000 steps/' "$work/lj.in"
"$tests/mpirun.sh" "$ranks" "$build/bin/minimd" -i "$work/lj.in" --offpath paper --device-kind openmp > "$work/lost.log" 2>&1 &
job=$!
for _ in $(seq 500); do
    [ "$(pgrep -c -P "${daemons[-1]}" || true)" -ge "$ranks" ] && break
    sleep 0.02
done
sleep 1
kill -0 "$job" || fail "$(cat "$work/lost.log")"
pgrep -P "${daemons[-1]}" | xargs kill -9
if wait "$job"; then fail "a run whose devices are lost should be an error"; fi
grep -q "process .*ended\|is lost" "$work/lost.log" || fail "$(cat "$work/lost.log")"

says() {  # TEXT: what a run says that cannot have a device
    if "$tests/mpirun.sh" "$ranks" "$program" -s 4 -n 1 --offpath paper --device-kind openmp > "$work/refused.log" 2>&1; then fail "it should be an error"; fi
    grep -q -- "--device-kind openmp: $1" "$work/refused.log" || fail "$(cat "$work/refused.log")"
}
unset OMP_TARGET_OFFLOAD
program=$build/bin/minimd
OMP_TARGET_OFFLOAD=DISABLED says "no device runs target regions on every node"
OFFPATH_DIR=$work/nothing says "no device runs target regions on every node"
mkdir "$work/bin"
cp "$build/bin/minimd" "$work/bin"
program=$work/bin/minimd says "this minimd was built without target regions, for which CMake needs clang 16"
