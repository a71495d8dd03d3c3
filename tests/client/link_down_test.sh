#!/usr/bin/env bash
# link_down_test.sh BUILD: a host and its device, as network namespaces joined by a veth pair. The link is taken down in the middle of a job. The
# client must report which device is lost and why. The daemon must end the session, and serve the next job when the link is up again. Exit
# code 77: no namespaces here.
set -euo pipefail
build=$1
. "$(dirname "$0")/../support/second_machine.sh"
enter_namespaces "$@"
. "$(dirname "$0")/../support/daemons.sh"
second_machine 10.99.0
listen_options # makes the key
daemon_prefix=("${on_second[@]}")
start_daemon "$dir" "$dir/daemon.log" --listen 10.99.0.2 --key-file "$dir/key" --net-devices v0
export OFFPATH_DEVICES=10.99.0.2 OFFPATH_KEY_FILE=$dir/key OFFPATH_HOST_DEVICES=v0

"$build/bin/endless" 60 >"$dir/said" 2>"$dir/client.log" &
client=$!
for _ in $(seq 600); do
    grep -q running "$dir/said" && break
    sleep 0.05
done
grep -q running "$dir/said" || fail "the job does not run"
ip link set v0 down
for _ in $(seq 300); do
    kill -0 "$client" 2>/dev/null || break
    sleep 0.1
done
kill -0 "$client" 2>/dev/null && fail "30 s after its link went down the client has noticed nothing"
wait "$client" && code=0 || code=$?
[ "$code" = 3 ] || fail "the client ended with $code"
grep -q "lost proxy 0 on node .*offpathd at 10.99.0.2:7471.*: .*\(nothing was heard\|broken\|died\)" "$dir/client.log" ||
    fail "the client does not name the device and the cause"
for _ in $(seq 300); do
    grep -q "the session of rank 0 .* ends:" "$dir/daemon.log" && break
    sleep 0.1
done
grep -q "the session of rank 0 .* ends:" "$dir/daemon.log" || fail "the daemon has noticed nothing"
kill -0 "$daemon" 2>/dev/null || fail "the daemon has ended"

ip link set v0 up
ip addr replace 10.99.0.1/24 dev v0
for _ in $(seq 1000); do
    [ "$(cat /sys/class/net/v0/operstate)" = up ] && break
    sleep 0.02
done
timeout 60 "$build/bin/endless" 0.5 >"$dir/said" 2>"$dir/second.log" || fail "the next job is not served"
echo "noticed; the daemon serves on"
