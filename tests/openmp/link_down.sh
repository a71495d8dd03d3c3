#!/usr/bin/env bash
# link_down.sh BUILD PROGRAM: a host and its device, as network namespaces joined by a veth pair. The link is taken down while a region runs. Within
# 10 s the program must end, and say which device is lost and why. Exit code 77: no namespaces here.
set -euo pipefail
build=$1 program=$2
if [ "${3:-}" != inside ]; then
    unshare --user --map-root-user --net --mount mount -t sysfs sysfs /sys 2>/dev/null && command -v ip >/dev/null || {
        echo "skipped: no user and network namespaces, or no ip command"
        exit 77
    }
    exec unshare --user --map-root-user --net --mount --pid --fork --kill-child --mount-proc "$0" "$build" "$program" inside
fi

mount -t sysfs sysfs /sys # UCX finds network devices there
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
unshare --net --mount sh -c "mount -t sysfs sysfs /sys; touch $dir/up; exec sleep 100" &
device=$!
for _ in $(seq 100); do
    [ -e "$dir/up" ] && break
    sleep 0.02
done
on_device() { nsenter -t "$device" -n -m "$@"; }
ip link add v0 type veth peer name v0 netns "$device"
for _ in $(seq 100); do
    ip link set v0 up && on_device ip link set v0 up && break
done
ip addr add 10.99.0.1/24 dev v0
on_device ip addr add 10.99.0.2/24 dev v0
(umask 077 && head -c 32 /dev/urandom >"$dir/key")
daemon_prefix=(nsenter -t "$device" -n -m)
start_daemon "$dir" "$dir/daemon.log" --name dpu0 --listen 10.99.0.2 --net-devices v0 --key-fd 9 --allow-images 9< <(cat "$dir/key")
export OFFPATH_DEVICES=10.99.0.2 OFFPATH_KEY_FILE=$dir/key OMP_TARGET_OFFLOAD=MANDATORY
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

"$program" endless >"$dir/said" 2>"$dir/program.log" &
running=$!
for _ in $(seq 200); do
    grep -q begins "$dir/said" && break
    sleep 0.05
done
grep -q begins "$dir/said" || fail "the region does not begin"
ip link set v0 down
begin=$SECONDS
for _ in $(seq 120); do
    kill -0 "$running" 2>/dev/null || break
    sleep 0.1
done
kill -0 "$running" 2>/dev/null && fail "12 s after its link went down the program has noticed nothing"
took=$((SECONDS - begin))
wait "$running" && fail "the program ends well"
[ "$took" -le 10 ] || fail "the program needed $took s"
grep -q "device dpu0: .*\(no sign of life from its process\|the connection to its process on the device is lost\)" "$dir/program.log" ||
    fail "the program does not name the device and the cause"
kill -0 "$daemon" 2>/dev/null || fail "the daemon has ended"
