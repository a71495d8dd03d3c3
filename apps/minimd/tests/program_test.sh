#!/usr/bin/env bash
# program_test.sh PROGRAM...: what minimd writes, minimd and others can read: restarts on another number of ranks, dumps as data files, the
# reports, and errors in files.
set -euo pipefail
program=("$@")
launch=$(cd "$(dirname "$0")/../../../tests" && pwd)/mpirun.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >in.test <<'END'
title

lj units
none
lj
1.0 1.0
6 5 4
20 steps
0.005
1.44
0.8442
5
2.5 0.3
10
END
run() { # RANKS ARGS...
    local ranks=$1
    shift
    "$launch" "$ranks" "${program[@]}" -i in.test "$@"
}

run 2 --json whole.json --dump frames.lammpstrj --dump-every 10 >screen.txt
run 2 -n 10 --json first.json --write-restart half.restart --dump half.xyz >/dev/null
run 3 -n 10 --json second.json --restart half.restart -o 1 >/dev/null
run 1 -n 10 --json single.json --restart half.restart --precision single >/dev/null

# Two threads, and one that has to do the work of both.
run 1 -t 2 --json threads.json >/dev/null
OMP_THREAD_LIMIT=1 run 1 -t 2 --json limited.json >/dev/null
OMP_THREAD_LIMIT=1 run 2 -t 2 --half_neigh 0 --json limited-full.json >/dev/null

# The first frame as a data file, its types as they are.
awk 'BEGIN { print "from a dump\n" }
     /^ITEM: BOX/ { bounds = 3; next }
     bounds > 0 { axis = substr("zyx", bounds, 1); box = box $1 " " $2 " " axis "lo " axis "hi\n"; --bounds; next }
     /^ITEM: TIMESTEP/ && seen++ { exit }
     /^ITEM/ { next }
     NF == 8 { atoms = atoms $1 " " $2 " " $3 " " $4 " " $5 "\n"; speeds = speeds $1 " " $6 " " $7 " " $8 "\n"; ++n }
     END { printf "%d atoms\n4 atom types\n%s\nAtoms # atomic\n\n%s\nVelocities\n\n%s", n, box, atoms, speeds }' frames.lammpstrj >dump.data
run 2 --json data.json -f dump.data >/dev/null

python3 - <<'END'
import glob, json

def rows(name):
    return {row["step"]: row for row in json.load(open(name))["thermo"]}

def same(a, b, digits):
    for key in "tup":
        assert abs(a[key] - b[key]) <= 10.0 ** -digits * max(1, abs(a[key])), (key, a, b)

whole, first, second = rows("whole.json"), rows("first.json"), rows("second.json")
assert sorted(whole) == [0, 10, 20] and sorted(first) == [0, 10] and sorted(second) == [10, 20], (whole, first, second)
same(whole[0], first[0], 12)
same(whole[10], second[10], 12)
same(whole[20], second[20], 10)
same(whole[20], rows("single.json")[20], 4)
for step in whole:
    for name in ("threads", "limited", "limited-full"):
        same(whole[step], rows(f"{name}.json")[step], 10)
data = rows("data.json")
same(whole[0], data[0], 7)
same(whole[20], data[20], 6)

screen = [line.split() for line in open("screen.txt")]
table = {int(line[0]): [float(word) for word in line[1:4]] for line in screen if len(line) == 5 and line[0].isdigit()}
for step, row in whole.items():
    assert all(abs(seen - row[key]) < 1e-6 * max(1, abs(seen)) for seen, key in zip(table[step], "tup")), (table, row)
assert [line for line in screen if "PERF_SUMMARY" in line][0][:4] == ["2", "1", "20", "480"]

text = open("frames.lammpstrj").read().splitlines()
assert [int(text[i + 1]) for i, line in enumerate(text) if line == "ITEM: TIMESTEP"] == [0, 10, 20]
assert len(text) == 3 * (9 + 480)
lines = open("half.xyz").read().splitlines()
assert len(lines) == 2 * (2 + 480) and lines[482] == "480" and "Step=10 " in lines[483]

[yaml] = glob.glob("miniMD-*.yaml")
said = open(yaml).read()
assert "  atoms: 480\n" in said and said.count("Conservation:") == 2 and "  mpi_processes: 3\n" in said, said
END

fails_with() { # MESSAGE ARGS...
    local message=$1 code=0
    shift
    run 2 "$@" >out.txt 2>err.txt || code=$?
    [ $code -eq "$expected" ] || { echo "exit code $code, expected $expected: $*" >&2; exit 1; }
    [ "$(grep -cF "$message" err.txt)" -eq 1 ] || { echo "expected '$message' once, got:" >&2; cat err.txt >&2; exit 1; }
}
expected=2
sed -i '200s/.*/7 1 0 0/' dump.data
fails_with "minimd: dump.data:200: expected id, type, x, y, z and maybe three image flags, found '7 1 0 0'" -f dump.data
truncate -s -10 half.restart
fails_with "minimd: cannot go on from 'half.restart': it has 30838 bytes, but its 480 atoms need 30848" --restart half.restart
fails_with "minimd: --dump: cannot write 'no/x.xyz'" --dump no/x.xyz
fails_with "minimd: --lanes: no kernels with 16 lanes" --lanes 16
fails_with "need devices as ranks of the job" --tunnel
if grep -q -e "--device-kind" err.txt; then exit 1; fi
fails_with "minimd: --where is for jobs without" --where all --offpath paper
fails_with "minimd: --device-share, --no-share-ordinary, --no-device-ghosts and --no-device-trials are for" --device-share 0.5
fails_with "minimd: --device-kind runtime and openmp are for --offpath" --device-kind runtime

# Ranks that were given different flags all end.
fails_with "not expected: --bogus" -n 1 : -n 1 "${program[@]}" -i in.test --bogus

# A report that cannot be written after all: every rank ends, and nothing is lost.
if [ -e /dev/full ]; then
    fails_with "minimd: cannot write '/dev/full'" -n 1 --json /dev/full
    grep -q '^{"atoms":480,"steps":1,' out.txt
fi

# What is found by all ranks is said once: two atoms in one place; and pairs that can be missed in the steps after the last rebuild.
printf 'two\n\n3 atoms\n1 atom types\n0 9 xlo xhi\n0 9 ylo yhi\n0 9 zlo zhi\n\nAtoms\n\n1 1 1 1 1\n2 1 1 1 1\n3 1 7 7 7\n' >two.data
expected=1 fails_with "minimd: rank 0: step 0: force or velocity of atom 1 is not a number" -f two.data
[ "$(grep -c "is not a number" err.txt)" -eq 1 ]
sed '12s/.*/100/' in.test >in.late
"$launch" 2 "${program[@]}" -i in.late -n 30 >/dev/null 2>err.txt
[ "$(grep -c "moved .* more than half the skin" err.txt)" -eq 1 ]
sed -i '7s/.*/6 5/' in.test
fails_with "minimd: in.test:7: expected the unit cells in z, found '6 5'"
