#!/usr/bin/env bash
# images.sh BUILD local|remote|aarch64 ONE TWO: what programs send of their images, ONE and TWO, which have 3 MiB of different content each. The
# first program sends its image, later ones find it on the device, whoever sent it. aarch64: on the emulated device of the build that
# OFFPATH_BUILD_AARCH64 names.
set -euo pipefail
build=$1 attach=$2 one=$3 two=$4
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_TARGET_REPORT=1
if [ "$attach" = aarch64 ]; then
    build=$OFFPATH_BUILD_AARCH64
    daemon_prefix=("$build/bin/run")
fi

# device OPTIONS...: starts a daemon for what follows.
device() {
    kept=0
    start_target_device "$attach" --log-level debug "$@"
}

# runs PROGRAM NUMBER sends|finds [keeps]: the program, of that VERSION, sends its image or finds it, and nothing else. Then the daemon keeps it.
runs() {
    local sent found
    timeout 60 "$1" >"$dir/out.txt" 2>"$dir/report.log" || fail "$1 ended with $?"
    diff <(echo "$2 $((2 * $2))") "$dir/out.txt" >&2 || fail "another output than expected"
    read -r sent found < <(sed -n 's/^offpath: device dpu0: \([0-9]*\) bytes of images sent to it; \([0-9]*\) bytes were there$/\1 \2/p' "$dir/report.log")
    if [ "$3" = sends ]; then
        [ "$sent" -gt 3145728 ] && [ "$found" = 0 ] || fail "$1 sent $sent bytes and found $found"
    else
        [ "$sent" = 0 ] && [ "$found" -gt 3145728 ] || fail "$1 sent $sent bytes and found $found"
    fi
    rm "$dir/report.log"
    [ "${4:-}" = keeps ] || return 0
    kept=$((kept + 1))
    for _ in $(seq 300); do
        [ "$(grep -c "bytes is kept" "$dir/daemon.log")" -lt $kept ] || return 0
        sleep 0.1
    done
    fail "the daemon does not keep the image"
}

device
runs "$one" 1 sends keeps
runs "$one" 1 finds
runs "$two" 2 sends keeps
runs "$two" 2 finds
runs "$one" 1 finds
end_daemon
grep -q "images: 2 kept, .* 0 dropped; 3 times one was there" "$dir/daemon.log" || fail "the daemon does not say what it kept"

# Of programs that start together, one sends the image, and the others wait for it.
rm "$dir/daemon.log"
device
for i in 1 2 3 4; do
    timeout 60 "$one" >"$dir/out.$i" 2>"$dir/report.$i" &
    together[i]=$!
done
for i in 1 2 3 4; do
    wait "${together[i]}" || fail "program $i of those that start together ended with $?"
    diff <(echo "1 2") "$dir/out.$i" >&2 || fail "another output than expected"
done
senders=$(grep -lE ": [1-9][0-9]* bytes of images sent" "$dir"/report.[1-4] | wc -l)
finders=$(grep -lE "; [1-9][0-9]* bytes were there" "$dir"/report.[1-4] | wc -l)
[ "$senders" = 1 ] && [ "$finders" = 3 ] || fail "of four programs that start together, $senders sent the image and $finders found it"
end_daemon

# One of them has room.
rm "$dir/daemon.log"
device --image-cache-mib 4
runs "$one" 1 sends keeps
runs "$two" 2 sends keeps
runs "$one" 1 sends keeps
runs "$one" 1 finds
end_daemon
grep -q "images: 1 kept, .* 2 dropped; 1 times one was there" "$dir/daemon.log" || fail "the daemon does not say what it dropped"

device --image-cache-mib 0
runs "$one" 1 sends
runs "$one" 1 sends
end_daemon
