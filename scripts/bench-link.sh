#!/usr/bin/env bash
# bench-link.sh [BENCH-LINK OPTIONS]: prints as JSON all that bench-link measures. It compares the round trip
# of a command over the link to a device with UCX's own ping-pong over the same loopback device (ucx_perftest,
# active messages of 64 bytes over TCP). Needs an idle machine with two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
ucx=(.venv/lib/python3*/site-packages/libucx)
if [ -x "${ucx[0]}/bin/ucx_perftest" ]; then
    perftest=(env "LD_LIBRARY_PATH=${ucx[0]}/lib" "${ucx[0]}/bin/ucx_perftest")
else
    perftest=("$(command -v ucx_perftest)") || {
        echo "bench-link.sh: ucx_perftest is missing; run scripts/setup.sh" >&2
        exit 1
    }
fi
export UCX_TLS=tcp UCX_NET_DEVICES=lo UCX_WARN_UNUSED_ENV_VARS=n
port=$((20000 + RANDOM % 20000))
first=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/') last=$(taskset -cp $$ | sed 's/.*[ ,-]\([0-9]*\)$/\1/')
taskset -c "$last" "${perftest[@]}" -p "$port" >/dev/null 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 50); do
    said=$(taskset -c "$first" "${perftest[@]}" 127.0.0.1 -p "$port" -t ucp_am_lat -s 64 -n 20000 -w 2000 -f -v 2>&1) && break
    sleep 0.1
done
# Half of the median round trip, in microseconds.
half=$(echo "$said" | awk -F, '/50.0_percentile_lat/ { found = 1 } END { if (found && $2 > 0) print $2 }')
[ -n "$half" ] || {
    echo "bench-link.sh: ucx_perftest printed no latency: $said" >&2
    exit 1
}
unset UCX_TLS
build/bin/bench-link --devices lo "$@" | .venv/bin/python -c '
import json, sys
result = json.load(sys.stdin)
ucx = 2 * float(sys.argv[1])
command = next(row["round_trip_us"] for row in result["rows"] if row["test"] == "command" and row["waits_by"] == "spinning")
result["ucx_perftest_round_trip_us"] = ucx
result["command_relative_to_ucx_perftest"] = command / ucx
print(json.dumps(result, indent=2))' "$half"
