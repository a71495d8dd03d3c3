#!/usr/bin/env bash
# cut_link_test.sh BENCH_TRANSPORT: two nodes, as network namespaces joined by a veth pair. When packets no longer arrive, both sides must detect it
# within 12 s and end with a message. Exit code 77: no namespaces here.
set -euo pipefail
bench=$1
if [ "${2:-}" != inside ]; then
    unshare --user --map-root-user --net --mount mount -t sysfs sysfs /sys 2>/dev/null && command -v ip >/dev/null || {
        echo "skipped: no user and network namespaces, or no ip command"
        exit 77
    }
    version=$("$bench" --version | sed -n 's/^UCX 1\.\([0-9]*\).*/\1/p')
    if [ -n "$version" ] && [ "$version" -lt 17 ]; then
        echo "skipped: UCX 1.$version knows no limit for unanswered data"
        exit 77
    fi
    exec unshare --user --map-root-user --net --mount --pid --fork --kill-child --mount-proc "$0" "$bench" inside
fi

# UCX finds network devices there.
mount -t sysfs sysfs /sys
meeting=$(mktemp -d)
trap 'rm -rf "$meeting"' EXIT
unshare --net --mount sh -c "mount -t sysfs sysfs /sys; touch $meeting/up; exec sleep 60" &
other=$!
for _ in $(seq 100); do
    [ -e "$meeting/up" ] && break
    sleep 0.02
done
on_other() { nsenter -t "$other" -n -m "$@"; }
ip link add v0 type veth peer name v0 netns "$other"
ip addr add 10.99.0.1/24 dev v0
on_other ip addr add 10.99.0.2/24 dev v0
ip link set v0 up
on_other ip link set v0 up
for _ in $(seq 100); do
    [ "$(cat /sys/class/net/v0/operstate) $(on_other cat /sys/class/net/v0/operstate)" = "up up" ] && break
    sleep 0.02
done

options=(--dir "$meeting" --tls tcp,self --net-devices v0 --sizes 524288 --seconds 1 --repeats 100)
on_other "$bench" --role server "${options[@]}" >"$meeting/server.log" 2>&1 &
server=$!
"$bench" --role client "${options[@]}" >"$meeting/client.log" 2>&1 &
client=$!
sleep 3
for process in $server $client; do
    kill -0 "$process" 2>/dev/null || { cat "$meeting"/*.log; echo "FAILED: it ended before the cut"; exit 1; }
done

# Both directions vanish without a word.
ip route add blackhole 10.99.0.2/32
on_other ip route add blackhole 10.99.0.1/32
for _ in $(seq 120); do
    kill -0 "$server" 2>/dev/null || kill -0 "$client" 2>/dev/null || break
    sleep 0.1
done
for side in server client; do
    process=${!side}
    if kill -0 "$process" 2>/dev/null; then
        echo "FAILED: 12 s after the cut the $side has noticed nothing"
        exit 1
    fi
    wait "$process" && code=0 || code=$?
    if [ "$code" != 1 ] || ! grep -qE "is gone|send failed|post failed" "$meeting/$side.log"; then
        echo "FAILED: the $side ended with $code"
        cat "$meeting/$side.log"
        exit 1
    fi
done
echo "both sides noticed"
