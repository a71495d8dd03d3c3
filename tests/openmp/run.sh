#!/usr/bin/env bash
# run.sh BUILD local|remote|aarch64 PROGRAM EXPECTED: a program with target regions on a device: local, as if on a system of its own, or an
# emulated one (of the build that OFFPATH_BUILD_AARCH64 names). Its output must be that of the file EXPECTED, in which DEVICE stands for the
# device's name.
set -euo pipefail
build=$1 attach=$2 program=$3 expected=$4
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
plugins=$build/lib/openmp
if [ "$attach" = aarch64 ]; then
    build=$OFFPATH_BUILD_AARCH64
    daemon_prefix=("$build/bin/run")
fi
if [ "$attach" != local ]; then
    (umask 077 && head -c 32 /dev/urandom >"$dir/key")
    # A key that comes by a pipe lets regions run as the daemon's own user.
    start_daemon "$dir/s" "$dir/daemon.log" --name dpu0 --listen 127.0.0.1:0 --key-fd 9 --allow-images 9< <(cat "$dir/key")
    use_device "$dir/s"
else
    start_daemon "$dir/s" "$dir/daemon.log" --name dpu0
    export OFFPATH_DIR=$dir/s
fi
export LD_LIBRARY_PATH=$plugins${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_TARGET_OFFLOAD=MANDATORY
timeout 60 "$program" >"$dir/output.txt" 2>"$dir/errors.log" || fail "$program ended with $?"
sed 's/DEVICE/dpu0/' "$expected" | diff - "$dir/output.txt" >&2 || fail "another output than expected"
for _ in $(seq 50); do
    hosts=$(pgrep -P "$daemon" || true)
    [ -n "$hosts" ] || break
    sleep 0.1
done
[ -z "$hosts" ] || fail "5 s after the program's end its process on the device is still there"
[ ! -s "$dir/errors.log" ] || fail "it wrote to standard error"
end_daemon
