#!/usr/bin/env bash
# run.sh BUILD local|remote|aarch64 PROGRAM EXPECTED: a program with target regions on a device: local, as if on a system of its own, or an
# emulated one (of the build that OFFPATH_BUILD_AARCH64 names). Its output must be that of the file EXPECTED, in which DEVICE stands for the
# device's name. With DEVICES=2 the program has two such devices. In EXPECTED, SECOND stands for the number of the last one.
set -euo pipefail
build=$1 attach=$2 program=$3 expected=$4
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
plugins=$build/lib/openmp
if [ "$attach" = aarch64 ]; then
    build=$OFFPATH_BUILD_AARCH64
    daemon_prefix=("$build/bin/run")
fi
second=$((${DEVICES:-1} - 1))
start_target_device "$attach"
first=$daemon
if [ $second -eq 1 ]; then
    if [ "$attach" != local ]; then
        start_daemon "$dir/t" "$dir/daemon1.log" --name dpu1 --listen 127.0.0.1:0 --key-fd 9 --allow-images 9< <(cat "$dir/key")
        OFFPATH_TARGET_DEVICES=127.0.0.1:$(cat "$dir"/s/*.port),127.0.0.1:$(cat "$dir"/t/*.port)
    else
        start_daemon "$dir/t" "$dir/daemon1.log" --name dpu1
        OFFPATH_TARGET_DEVICES=$dir/s,$dir/t
    fi
    export OFFPATH_TARGET_DEVICES
fi
export LD_LIBRARY_PATH=$plugins${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_TARGET_OFFLOAD=MANDATORY
timeout 60 "$program" >"$dir/output.txt" 2>"$dir/errors.log" || fail "$program ended with $?"
sed "s/DEVICE/dpu0/; s/SECOND/$second/" "$expected" | diff - "$dir/output.txt" >&2 || fail "another output than expected"
for _ in $(seq 300); do
    hosts=$(for process in "${daemons[@]}"; do pgrep -P "$process" || true; done)
    [ -n "$hosts" ] || break
    sleep 0.1
done
[ -z "$hosts" ] || fail "30 s after the program's end its process on the device is still there"
[ ! -s "$dir/errors.log" ] || fail "it wrote to standard error"
if [ $second -eq 1 ]; then
    # Before the last one, since end_daemon looks for files of all.
    kill -TERM "$first"
    wait "$first" || fail "the first daemon ended with $?"
    daemons=("$daemon")
fi
end_daemon
