#!/usr/bin/env bash
# group_test.sh BUILD RANKS ARGS...: runs `ring-hpl --variant group ARGS` on RANKS ranks against a daemon of its own.
set -u
build=$1 ranks=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/offpath-test.XXXXXX")
daemon=
cleanup() {
    [ -n "$daemon" ] && kill -TERM "$daemon" 2>/dev/null && wait "$daemon"
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

mkfifo "$dir/ready"
"$build/bin/offpathd" --dir "$dir" --ready-fd 3 --log-file "$dir/log" --idle-exit 300 3<>"$dir/ready" >"$dir/out" 2>&1 &
daemon=$!
exec 4<>"$dir/ready"
if ! read -r -n 1 -t 20 <&4; then
    echo "group_test.sh: the daemon was not ready within 20 s: $(cat "$dir/out" "$dir/log")" >&2
    exit 1
fi

OFFPATH_DIR=$dir timeout -k 5 120 "$root/tests/mpirun.sh" "$ranks" "$build/bin/ring-hpl" --variant group "$@"
result=$?
if [ "$(grep -c ' attached to proxy ' "$dir/log")" -ne "$ranks" ]; then
    echo "group_test.sh: the daemon did not serve $ranks ranks" >&2
    result=1
fi
[ "$result" -eq 0 ] || sed 's/^/  daemon: /' "$dir/log" >&2
exit "$result"
