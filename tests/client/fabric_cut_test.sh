#!/usr/bin/env bash
# fabric_cut_test.sh BUILD: two nodes, as network namespaces joined by a veth pair, each with a daemon and a rank. The job survives if the link is
# down for less than half of the limit. If it stays down, both sides report it, also to the rank that only receives. Exit code 77: no namespaces here.
set -euo pipefail
build=$1
. "$(dirname "$0")/../support/second_machine.sh"
enter_namespaces "$@"
. "$(dirname "$0")/../support/daemons.sh"
second_machine 10.98.0

# A link that is down for 1 s is far from that, also on a busy machine.
limit=12
export OFFPATH_LOST_AFTER_S=$limit OFFPATH_DIR=$dir UCX_TLS=tcp,self
start_daemon "$dir" "$dir/daemon-one.log" --net-devices v0
daemon_prefix=("${on_second[@]}")
start_daemon "$dir" "$dir/daemon-two.log" --net-devices v0
mkdir "$dir/meeting"
"$build/bin/pair" 0 "$dir/meeting" 60 >"$dir/said" 2>"$dir/rank0.log" &
first=$!
"${on_second[@]}" "$build/bin/pair" 1 "$dir/meeting" 60 >/dev/null 2>"$dir/rank1.log" &
other=$!
for _ in $(seq 600); do
    grep -q running "$dir/said" && break
    sleep 0.05
done
grep -q running "$dir/said" || fail "the job does not run"
sleep 1

ip link set v0 down
sleep 1
ip link set v0 up
ip addr replace 10.98.0.1/24 dev v0
sleep 3
kill -0 "$first" 2>/dev/null && kill -0 "$other" 2>/dev/null || fail "a link that was down for 1 s ended the job"

ip link set v0 down
for rank in "$first" "$other"; do
    for _ in $(seq 600); do
        kill -0 "$rank" 2>/dev/null || break
        sleep 0.1
    done
    kill -0 "$rank" 2>/dev/null && fail "60 s after the link went down a rank has noticed nothing"
    wait "$rank" && code=0 || code=$?
    [ "$code" = 3 ] || fail "a rank ended with $code"
done
grep -q "was lost" "$dir/daemon-one.log" && grep -q "was lost" "$dir/daemon-two.log" || fail "a daemon does not say what it lost"
echo "a flap was survived; both sides were told"
