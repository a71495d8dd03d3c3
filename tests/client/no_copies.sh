#!/usr/bin/env bash
# no_copies.sh BUILD: example-no-copies beside devices that map memory over TCP. All data are right, and the lines say what is not so here.
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/support/daemons.sh"

start_daemon "$dir/d" "$dir/daemon.log" --proxies 2
OFFPATH_DIR=$dir/d "$root/tests/mpirun.sh" 2 "$build/bin/example-no-copies" >"$dir/said.log" 2>&1 && fail "it found no copies over TCP"
[ "$(grep -c '^pass: rank [01]: the data of ' "$dir/said.log")" -eq 14 ] || fail "wrong data, or too few lines"
[ "$(grep -c '^fail: rank [01]: the device reaches memory of offpath_mem_alloc by xgvmi' "$dir/said.log")" -eq 2 ] || fail "no line on the back end"
[ "$(grep -c '^      it is map' "$dir/said.log")" -eq 2 ] || fail "it does not say which back end it is"
[ "$(grep -c '^fail: rank [01]: devices copied nothing' "$dir/said.log")" -eq 2 ] || fail "no line on copies"
OFFPATH_DIR=$dir/d "$root/tests/mpirun.sh" 3 "$build/bin/example-no-copies" >"$dir/three.log" 2>&1 && fail "it takes three ranks"
grep -q 'takes 2 ranks, on two nodes; it was started with 3' "$dir/three.log" || fail "it does not say how many ranks it takes"
end_daemon
