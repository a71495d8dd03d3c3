#!/usr/bin/env bash
# admission.sh BUILD PROGRAM: whose target regions a remote device runs, and as which user. Where it refuses, they run on the host, and one line
# says why.
set -euo pipefail
build=$1 program=$2
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
(umask 077 && head -c 32 /dev/urandom >"$dir/key")

# says LINE [WORDS]: the program prints LINE, and one line with WORDS on standard error; without WORDS nothing.
says() {
    timeout 20 "$program" >"$dir/out.txt" 2>"$dir/errors.log" || fail "the program ended with $?"
    diff <(echo "$1") "$dir/out.txt" >&2 || fail "another output than expected"
    [ "$(wc -l <"$dir/errors.log")" = $((${#2} > 0)) ] || fail "not one line, or none, on standard error"
    grep -q "${2:-}" "$dir/errors.log" || [ -z "$2" ] || fail "nobody said '$2'"
    rm "$dir/errors.log"
}

start_daemon "$dir/a" "$dir/a.log" --name refusing --listen 127.0.0.1:0 --key-fd 9 9< <(cat "$dir/key")
use_device "$dir/a"
says "on the host" "it refused: this device runs no target regions of programs on other systems (offpathd --allow-images); target regions run on the host"

start_daemon "$dir/b" "$dir/b.log" --name allowing --listen 127.0.0.1:0 --key-fd 9 --allow-images 9< <(cat "$dir/key")
use_device "$dir/b"
says "on the device as user $(id -u)" ""
for _ in {1..600}; do
    pgrep -P "$daemon" -f offpath-target-host >"$dir/left.txt" || break
    sleep 0.1
done
[ ! -s "$dir/left.txt" ] || fail "a program that has ended has a process on the device"
(umask 077 && head -c 32 /dev/urandom >"$dir/wrong")
OFFPATH_KEY_FILE=$dir/wrong says "on the host" "; target regions run on the host"
unset OFFPATH_KEY_FILE
says "on the host" "OFFPATH_KEY_FILE is not set"
pgrep -P "$daemon" -f offpath-target-host >"$dir/left.txt" && fail "a refused program has a process on the device"

# Their line is not encrypted, so who encrypts has none: neither a program nor a device.
OFFPATH_KEY_FILE=$dir/key OFFPATH_ENCRYPT=1 says "on the host" "target regions send their data in clear to devices on other systems, and OFFPATH_ENCRYPT is set"
start_daemon "$dir/e" "$dir/e.log" --name encrypting --listen 127.0.0.1:0 --key-fd 9 --allow-images --encrypt 9< <(cat "$dir/key")
use_device "$dir/e"
says "on the host" "it refused: target regions of programs on other systems come in clear, and this device encrypts"

# Regions of a daemon that can change users run as another one. That user has to reach the target host's program.
if [ "$(id -u)" = 0 ] && getent passwd nobody >/dev/null && command -v setpriv >/dev/null &&
    setpriv --reuid nobody --clear-groups test -x "$build/bin/offpath-target-host" 2>/dev/null; then
    start_daemon "$dir/c" "$dir/c.log" --name other --listen 127.0.0.1:0 --key-file "$dir/key" --allow-images --kernel-user nobody
    use_device "$dir/c"
    says "on the device as user $(id -u nobody)" ""
    # Each job has an account of its own, and the next job another one than the last.
    start_daemon "$dir/f" "$dir/f.log" --name own --listen 127.0.0.1:0 --key-file "$dir/key" --allow-images --kernel-user 61000-61001
    use_device "$dir/f"
    for account in 61000 61001 61000; do says "on the device as user $account" ""; done
else
    echo "--kernel-user is not tested: this needs root and a build that user nobody can reach"
fi

# Such regions could read a key file of the daemon's own user.
if timeout 20 "$build/bin/offpathd" --dir "$dir/d" --listen 127.0.0.1:0 --key-file "$dir/key" --allow-images >"$dir/d.log" 2>&1; then
    fail "a daemon whose key its regions could read has started"
fi
grep -q "kernel-user" "$dir/d.log" || fail "the daemon does not say what to do about the key"
