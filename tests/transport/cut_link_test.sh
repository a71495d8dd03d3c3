#!/usr/bin/env bash
# cut_link_test.sh BENCH_TRANSPORT: two nodes, as network namespaces joined by a veth pair. When packets no longer arrive, both sides must detect it
# and end with a message. Exit code 77: no namespaces here.
set -euo pipefail
bench=$1
version=$("$bench" --version | sed -n 's/^UCX 1\.\([0-9]*\).*/\1/p')
if [ -n "$version" ] && [ "$version" -lt 17 ]; then
    echo "skipped: UCX 1.$version knows no limit for unanswered data"
    exit 77
fi
. "$(dirname "$0")/../support/second_machine.sh"
enter_namespaces "$@"
meeting=$(mktemp -d)
trap 'rm -rf "$meeting"' EXIT
second_machine 10.99.0

options=(--dir "$meeting" --tls tcp,self --net-devices v0 --sizes 524288 --seconds 1 --repeats 100)
"${on_second[@]}" "$bench" --role server "${options[@]}" >"$meeting/server.log" 2>&1 &
server=$!
"$bench" --role client "${options[@]}" >"$meeting/client.log" 2>&1 &
client=$!
# They are connected when much has been sent.
for _ in $(seq 600); do
    [ "$(cat /sys/class/net/v0/statistics/tx_bytes)" -lt 20000000 ] || break
    sleep 0.1
done
for process in $server $client; do
    kill -0 "$process" 2>/dev/null || { cat "$meeting"/*.log; echo "FAILED: it ended before the cut"; exit 1; }
done

# Both directions vanish without a word.
ip route add blackhole 10.99.0.2/32
"${on_second[@]}" ip route add blackhole 10.99.0.1/32
for _ in $(seq 600); do
    kill -0 "$server" 2>/dev/null || kill -0 "$client" 2>/dev/null || break
    sleep 0.1
done
for side in server client; do
    process=${!side}
    if kill -0 "$process" 2>/dev/null; then
        echo "FAILED: 60 s after the cut the $side has noticed nothing"
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
