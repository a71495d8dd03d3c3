#!/usr/bin/env bash
# without_daemon.sh BUILD PROGRAM: what the front end does without offloading. No daemon: one warning and the host's MPI. OFFPATH=off: no output.
# Invalid settings: an error message. OFFPATH_AUTOSTART: a daemon that starts, and ends when it has no client left.
set -u
build=$1 program=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
at_end() {
    local file
    for file in "$dir"/*.pid; do [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null; done
}
preload=$(preload_of "$program" "$build/lib/liboffpath-mpi.so")
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 OMPI_MCA_topo=basic
export OFFPATH_IDLE_EXIT=15 # longer than a job takes to start on a loaded machine
run() { # VARIABLE=VALUE...
    timeout -k 5 100 env "$@" OFFPATH_DIR="$dir" "$root/tests/mpirun.sh" 3 env LD_PRELOAD="$preload" "$program" \
        >"$dir/out" 2>"$dir/err.log"
}

run A=1 || fail "without a daemon the program ended with $?"
[ "$(grep -c "^offpath: .*the program runs on the host's MPI" "$dir/err.log")" -eq 1 ] || fail "not one warning without a daemon"

run OFFPATH=off || fail "with OFFPATH=off the program ended with $?"
grep -q '^offpath:' "$dir/err.log" && fail "OFFPATH=off is not silent"

run OFFPATH_MIN_BYTES=many && fail "OFFPATH_MIN_BYTES=many is accepted"
grep -q "^offpath: OFFPATH_MIN_BYTES='many'.*accepted" "$dir/err.log" || fail "no clear error for OFFPATH_MIN_BYTES=many"
run OFFPATH_DETERMINISTIC=1 OFFPATH_REFINE_SUMS=on && fail "settings that contradict each other are accepted"
grep -q "^offpath: OFFPATH_DETERMINISTIC=1 and OFFPATH_REFINE_SUMS=on contradict each other" "$dir/err.log" || fail "the contradiction is not told"
run OFFPATH_OPS=ialltoall,iscam && fail "OFFPATH_OPS=ialltoall,iscam is accepted"
grep -q "^offpath: OFFPATH_OPS=.*'iscam'.*accepted are default, all" "$dir/err.log" || fail "no clear error for OFFPATH_OPS"

# Devices of their own that are not there, or not meant for us: an error that says which, then the host's MPI.
listen_options # makes the key
fallback() { # WORDS VARIABLE=VALUE...
    local words=$1
    shift
    run "$@" || fail "with $* the program ended with $?"
    grep -q "^offpath: rank [0-9] on node .* is without a device: .*$words" "$dir/err.log" || fail "with $* nobody says '$words'"
    [ "$(grep -c "^offpath: .*the program runs on the host's MPI" "$dir/err.log")" -eq 1 ] || fail "with $* not one warning"
}
fallback '127.0.0.1:1: no offpathd answers at 127.0.0.1:1 (Connection refused)' \
    OFFPATH_DEVICES=127.0.0.1:1 OFFPATH_KEY_FILE="$dir/key"
fallback 'no rank has the devices. key: OFFPATH_KEY_FILE is not set' OFFPATH_DEVICES=127.0.0.1:1
fallback 'is not in OFFPATH_DEVICES, which lists elsewhere' OFFPATH_DEVICES=elsewhere=127.0.0.1 OFFPATH_KEY_FILE="$dir/key"

run OFFPATH_AUTOSTART=1 OFFPATH_DAEMON=/nonexistent/offpathd || fail "with a daemon that is not there the program ended with $?"
grep -q 'OFFPATH_DAEMON=./nonexistent/offpathd. names no program' "$dir/err.log" || fail "no clear error for a daemon that is not there"

run OFFPATH_AUTOSTART=1 OFFPATH_DAEMON="$build/bin/offpathd" OFFPATH_MIN_BYTES=0 || fail "with OFFPATH_AUTOSTART=1 the program ended with $?"
grep -q '^offpath: offloaded [1-9]' "$dir/err.log" || fail "nothing was offloaded with OFFPATH_AUTOSTART=1"
# The daemon outlives the job that started it, without holding its output, and the next job uses the same one.
pid=$(cat "$dir"/*.pid) || fail "the daemon that was started left no pid file"
kill -0 "$pid" || fail "the daemon that was started is gone at once"
tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^LD_PRELOAD=' && fail "the daemon has the front end loaded"
if [ -z "${UCX_MEM_MMAP_HOOK_MODE:-}$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^UCX_MEM_MMAP_HOOK_MODE=none$' || fail "the daemon starts slowly: UCX replaces functions of no use there"
fi
run OFFPATH_AUTOSTART=1 OFFPATH_DAEMON=/nonexistent/offpathd OFFPATH_MIN_BYTES=0 || fail "the second job ended with $?"
grep -q '^offpath: offloaded [1-9]' "$dir/err.log" || fail "the second job did not use the daemon of the first"
for _ in $(seq 600); do
    kill -0 "$pid" 2>/dev/null || exit 0
    sleep 0.1
done
fail "the daemon that was started does not end by itself within 60 s"
