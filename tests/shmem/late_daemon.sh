#!/usr/bin/env bash
# late_daemon.sh BUILD PROGRAM: a daemon that comes half a second after the PEs, which start none themselves. They wait for it, unless
# OFFPATH_DAEMON_WAIT_S says not to.
set -u
build=$1 program=$2
. "$(dirname "$0")/../support/daemons.sh"
export OFFPATH_DIR=$dir OFFPATH_AUTOSTART=0 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
OFFPATH_DAEMON_WAIT_S=0 timeout 60 "$build/bin/oshrun" -n 2 "$program" >"$dir/out" 2>&1 && fail "the program ran without a daemon"
grep -q 'no offpathd answers' "$dir/out" || fail "nothing says that no daemon answers"
OFFPATH_DAEMON_WAIT_S=4000 timeout 60 "$build/bin/oshrun" -n 2 "$program" >"$dir/out" 2>&1 && fail "a wait of 4000 s was accepted"
grep -q "OFFPATH_DAEMON_WAIT_S='4000': 0 to 3600 is accepted" "$dir/out" || fail "nothing says what is accepted"
OFFPATH_DAEMON_WAIT_S=20 timeout 60 "$build/bin/oshrun" -n 2 "$program" >"$dir/out" 2>&1 &
job=$!
sleep 0.5
start_daemon "$dir" "$dir/daemon.log" --idle-exit 30
wait "$job" || { cat "$dir/out" >&2; fail "the program did not wait for the daemon"; }
