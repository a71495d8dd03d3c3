#!/usr/bin/env bash
# group_test.sh BUILD RANKS ARGS...: runs `ring-hpl --variant group ARGS` on RANKS ranks against a daemon of its own.
set -u
build=$1 ranks=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
start_daemon "$dir" "$dir/daemon.log" --idle-exit 300

OFFPATH_DIR=$dir timeout -k 5 120 "$root/tests/mpirun.sh" "$ranks" "$build/bin/ring-hpl" --variant group "$@"
result=$?
[ "$(grep -c ' attached to proxy ' "$dir/daemon.log")" -eq "$ranks" ] || fail "the daemon did not serve $ranks ranks"
[ "$result" -eq 0 ] || fail "ring-hpl ended with $result"
end_daemon
