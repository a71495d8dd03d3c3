#!/usr/bin/env bash
# link_down.sh BUILD PROGRAM: a host and its device, as network namespaces joined by a veth pair. The link is taken down while a region runs. The
# program must end, and say which device is lost and why. Exit code 77: no namespaces here.
set -euo pipefail
build=$1 program=$2
# shellcheck source=tests/support/second_machine.sh
. "$(dirname "$0")/../support/second_machine.sh"
enter_namespaces "$@"
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
second_machine 10.99.0
(umask 077 && head -c 32 /dev/urandom >"$dir/key")
daemon_prefix=("${on_second[@]}")
start_daemon "$dir" "$dir/daemon.log" --name dpu0 --listen 10.99.0.2 --net-devices v0 --key-fd 9 --allow-images 9< <(cat "$dir/key")
export OFFPATH_DEVICES=10.99.0.2 OFFPATH_KEY_FILE=$dir/key OMP_TARGET_OFFLOAD=MANDATORY
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

"$program" endless >"$dir/said" 2>"$dir/program.log" &
running=$!
for _ in $(seq 600); do
    grep -q begins "$dir/said" && break
    sleep 0.05
done
grep -q begins "$dir/said" || fail "the region does not begin"
ip link set v0 down
for _ in $(seq 300); do
    kill -0 "$running" 2>/dev/null || break
    sleep 0.1
done
kill -0 "$running" 2>/dev/null && fail "30 s after its link went down the program has noticed nothing"
wait "$running" && fail "the program ends well"
grep -q "device dpu0: .*\(no sign of life from its process\|the connection to its process on the device is lost\)" "$dir/program.log" ||
    fail "the program does not name the device and the cause"
kill -0 "$daemon" 2>/dev/null || fail "the daemon has ended"
