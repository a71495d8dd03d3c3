#!/usr/bin/env bash
# containment.sh BUILD PROGRAM local|remote: a target region leaves processes behind in many ways (containment.c). Whatever ends first,
# and however, none of them is left.
set -euo pipefail
build=$1 program=$2 attach=$3
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_TARGET_OFFLOAD=MANDATORY
# A secret of the administrator, and nothing for programs.
export SECRET_OF_DAEMON=1

begin_daemon() {
    start_target_device "$attach"
    mark=offpath_host_of=$daemon
}

# All processes that run code of the daemon's programs, whatever they have done: by a word of their environment.
marked() {
    grep -lzsx "$mark" /proc/[0-9]*/environ | cut -d/ -f3 || true
}
none_left() {
    for _ in {1..150}; do
        [ -n "$(marked)" ] || return 0
        sleep 0.2
    done
    fail "processes are left after $1: $(marked | xargs -r ps -o pid,ppid,stat,args -p)"
}
at_end() {
    local left
    [ -z "$daemon" ] || kill -TERM "$daemon" 2>/dev/null || true
    for _ in {1..100}; do
        left=$(marked)
        [ -n "$left" ] || return 0
        sleep 0.05
    done
    kill -KILL $left 2>/dev/null || true
}

# begin END: starts the program, and returns when the region has left its processes.
begin() {
    : >"$dir/$1.txt"
    "$program" "$1" >"$dir/$1.txt" 2>"$dir/$1.err" &
    running=$!
    for _ in {1..1200}; do
        grep -qx 'left 1' "$dir/$1.txt" && return
        sleep 0.05
    done
    fail "the region does not end: $(cat "$dir/$1.err")"
}
over() {
    wait "$running" 2>/dev/null || true
}

begin_daemon
timeout 60 "$program" normal >"$dir/normal.txt" || fail "the program fails"
grep -qx end "$dir/normal.txt" || fail "the program does not end"
none_left "the program's end"
timeout 60 "$program" children >"$dir/children.txt" || fail "children that end badly end the program"
grep -qx 'children ended with code 7 and signal 11' "$dir/children.txt" || fail "children: $(cat "$dir/children.txt")"

# The rest is the daemon's and its wardens' alone, however programs attach.
if [ "$attach" = remote ]; then
    begin endless
    kill -KILL "$running"
    over
    none_left "a program that was killed"
    begin endless
    kill -KILL "$daemon"
    over
    wait "$daemon" 2>/dev/null || true
    none_left "a daemon that was killed"
    rm -f "$dir"/key "$dir"/s/*
    exit 0
fi

# The limit may already hit the region that leaves them.
OFFPATH_REGION_SECONDS=1 timeout 60 "$program" endless >"$dir/limit.txt" 2>"$dir/limit.err" && fail "an endless region ends"
grep -q 'did not end within' "$dir/limit.err" || fail "the limit is not told: $(cat "$dir/limit.err")"
none_left "a region that was ended by its limit"
begin bad
over
none_left "a crash"

begin endless
[ "$(marked | wc -l)" -ge 12 ] || fail "the test does not see what the region has left"
host=$(pgrep -f offpath-target-host -P "$(pgrep -P "$daemon" -f offpath-target-host)" | head -1)
grep -qzx 'SECRET_OF_DAEMON=1' "/proc/$host/environ" && fail "the region has the daemon's environment"
grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$host/status" || fail "the region may gain rights"
kill -KILL "$running"
over
none_left "a program that was killed"
begin stopped
kill -KILL "$running"
over
none_left "a program that was killed while its process on the device was stopped"

# What guards them is killed: the daemon takes its place.
begin endless
kill -KILL "$(pgrep -P "$daemon" -f offpath-target-host)"
over
none_left "the end of their warden"
for _ in {1..600}; do
    grep -q 'ended with signal 9' "$dir/daemon.log" && break
    sleep 0.05
done
grep -q 'ended with signal 9' "$dir/daemon.log" || fail "the end of a warden is not told"

begin endless
kill -TERM "$daemon"
over
wait "$daemon" || fail "the daemon ends with an error"
none_left "the daemon's end"

begin_daemon
begin endless
kill -KILL "$daemon"
over
wait "$daemon" 2>/dev/null || true
none_left "a daemon that was killed"
begin_daemon
begin stopped
kill -KILL "$daemon"
none_left "a daemon that was killed while the process of the regions was stopped"
over
rm -f "$dir"/key "$dir"/s/*
