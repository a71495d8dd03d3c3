#!/usr/bin/env bash
# faults.sh BUILD PROGRAM: target regions that end badly. The program gets a message that says what happened, within 10 s; the daemon, and
# another program with regions on the same device, go on.
set -euo pipefail
build=$1 program=$2
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# ends WAY WORDS: the program ends with an error, and its errors have WORDS.
ends() {
    local way=$1 words=$2 code=0
    OMP_TARGET_OFFLOAD=MANDATORY timeout 10 "$program" "$way" >"$dir/$way.txt" 2>"$dir/$way.log" || code=$?
    [ $code -ne 124 ] || fail "$way: not over after 10 s"
    [ $code -ne 0 ] || fail "$way: ended well"
    grep -q "$words" "$dir/$way.log" || fail "$way: nobody said '$words'"
    grep -qx 'x 2' "$dir/$way.txt" || fail "$way: the first region did not run"
    rm "$dir/$way.log"
}

# none_left AFTER: the daemon has no process for any program.
none_left() {
    for _ in {1..50}; do
        pgrep -P "$daemon" -f offpath-target-host >"$dir/left.txt" || return 0
        sleep 0.1
    done
    fail "target hosts are left after $1: $(cat "$dir/left.txt")"
}

start_daemon "$dir/s" "$dir/daemon.log" --name dpu0
export OFFPATH_DIR=$dir/s
ends crash 'device dpu0: .*_main_l[0-9]* ended with signal 11'
ends abort 'device dpu0: .*_main_l[0-9]* ended with signal 6'
ends exit 'device dpu0: .*_main_l[0-9]* called exit()'
ends kill 'device dpu0: .*ended without a word'
ends stack 'device dpu0: .*_main_l[0-9]* ended with signal 11'
ends memory 'device dpu0: no memory: 17592186044416 bytes'
ends between 'device dpu0: .*ended without a word'
OFFPATH_REGION_SECONDS=1 ends endless 'device dpu0: .*_main_l[0-9]* did not end within OFFPATH_REGION_SECONDS=1'
OFFPATH_REGION_SECONDS=1 ends endless-nowait 'device dpu0: .*did not end within OFFPATH_REGION_SECONDS=1'
none_left "an endless region"

# A program that is killed while its region runs leaves nothing behind.
"$program" endless >"$dir/killed.txt" 2>"$dir/killed.log" &
endless=$!
for _ in {1..100}; do
    grep -qx '.dpu0. begins' "$dir/killed.txt" && break
    sleep 0.1
done
grep -qx '.dpu0. begins' "$dir/killed.txt" || fail "the endless region does not begin"
kill -9 "$endless"
wait "$endless" 2>/dev/null || true
none_left "a killed program"
rm "$dir/killed.log"
kill -0 "$daemon" || fail "the daemon is gone"
OMP_TARGET_OFFLOAD=MANDATORY timeout 10 "$program" >"$dir/good.txt" || fail "a good program fails after the bad ones"
end_daemon

# No device: regions run on the host, and one line says why.
timeout 10 "$program" >"$dir/host.txt" 2>"$dir/host.log" || fail "without a device the program fails"
grep -qx end "$dir/host.txt" || fail "without a device the program does not end"
[ "$(grep -c 'target regions run on the host' "$dir/host.log")" = 1 ] || fail "not one line about the missing device"
rm "$dir/host.log"
OFFPATH=off timeout 10 "$program" >"$dir/off.txt" 2>"$dir/off.log" || fail "switched off, the program fails"
[ ! -s "$dir/off.log" ] || fail "switched off, something is said"

# The administrator allows no code of programs.
start_daemon "$dir/s" "$dir/daemon.log" --name dpu0 --no-kernels
timeout 10 "$program" >"$dir/refused.txt" 2>"$dir/refused.log" || fail "refused, the program fails"
grep -q 'runs no code of programs (offpathd --no-kernels); target regions run on the host' "$dir/refused.log" || fail "the refusal is not told"
rm "$dir/refused.log"
end_daemon
