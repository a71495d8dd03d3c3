#!/usr/bin/env bash
# run.sh BUILD cma|staged|two-proxies|remote|rings RANKS PROGRAM: runs PROGRAM under mpirun beside a daemon of its own,
# and checks that the daemon ends well and leaves nothing behind. remote: attached over TCP, without the socket.
# rings: so, too, with completions that the device writes into the ranks' memory, which stands in for RDMA.
set -u
build=$1 variant=$2 ranks=$3 program=$4
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/offpath-test.XXXXXX")
daemon=
trap '[ -n "$daemon" ] && kill -KILL "$daemon" 2>/dev/null; rm -rf "$dir"' EXIT
fail() {
    echo "run.sh: $*" >&2
    sed 's/^/  daemon: /' "$dir/log" >&2
    exit 1
}

options=() back_end=$variant
if [ "$variant" = two-proxies ]; then
    options=(--proxies 2) back_end=auto
fi
if [ "$variant" = rings ]; then
    export OFFPATH_LINK=ucx UCX_TLS=posix,tcp
fi
if [ "$variant" = remote ] || [ "$variant" = rings ]; then
    (umask 077 && head -c 32 /dev/urandom >"$dir/key")
    options=(--listen 127.0.0.1:0 --key-file "$dir/key") back_end=auto
fi
mkfifo "$dir/ready"
exec 4<>"$dir/ready"
"$build/bin/offpathd" --dir "$dir" --ready-fd 4 "${options[@]}" 2>"$dir/log" &
daemon=$!
read -r -n 1 -t 20 ready <&4 && [ "$ready" = 1 ] || fail "the daemon was not ready within 20 s"
exec 4<&-

if [ "$variant" = remote ] || [ "$variant" = rings ]; then
    export OFFPATH_DEVICES=127.0.0.1:$(cat "$dir"/*.port) OFFPATH_KEY_FILE=$dir/key
fi
OFFPATH_DIR=$dir OFFPATH_BACK_END=$back_end timeout -k 5 100 "$root/tests/mpirun.sh" "$ranks" "$program"
result=$?
if [ "$variant" = rings ] && ! grep -q "completions into the hosts' memory" "$dir/log"; then
    fail "completions were not written into the ranks' memory"
fi
[ $result -eq 0 ] || fail "$(basename "$program") ended with $result"
kill -TERM "$daemon"
wait "$daemon"
ended=$?
daemon=
[ $ended -eq 0 ] || fail "the daemon ended with $ended"
left=$(find "$dir" \( -name '*.sock' -o -name '*.pid' -o -name '*.port' \) -print)
[ -z "$left" ] || fail "left behind: $left"
