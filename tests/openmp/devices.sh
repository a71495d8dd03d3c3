#!/usr/bin/env bash
# devices.sh BUILD PROGRAM: no device, one, and three of them (two local, one as if on a system of its own), with OpenMP's settings that
# choose among them, and what lists them.
set -euo pipefail
build=$1 program=$2
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset OMP_TARGET_OFFLOAD OMP_DEFAULT_DEVICE

# says LINES [SETTINGS...]: the program ends well and prints LINES, and nothing on standard error.
says() {
    local lines=$1
    shift
    timeout 20 env "$@" "$program" >"$dir/out.txt" 2>"$dir/errors.log" || fail "$*: it ended with $?"
    diff <(printf '%b\n' "$lines") "$dir/out.txt" >&2 || fail "$*: another output than expected"
    [ ! -s "$dir/errors.log" ] || fail "$*: it wrote to standard error"
}

# refused WORDS [SETTINGS...]: the program ends with an error within 10 s, and its errors have WORDS.
refused() {
    local words=$1 code=0
    shift
    timeout 10 env "$@" "$program" >"$dir/out.txt" 2>"$dir/errors.log" || code=$?
    [ $code -ne 124 ] && [ $code -ne 0 ] || fail "$*: ended with $code"
    grep -q "$words" "$dir/errors.log" || fail "$*: no word of '$words'"
    rm "$dir/errors.log"
}

for name in a b c; do mkdir "$dir/$name"; done
refused "offloading is mandatory" OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_DIR="$dir/a"

start_daemon "$dir/a" "$dir/a.log" --name one
OFFPATH_DIR=$dir/a says "1 devices, default 0\n[one] the default runs this\n[one] region of 0\non 1 devices at a time, 7" OMP_TARGET_OFFLOAD=MANDATORY
OFFPATH_DIR=$dir/a says "0 devices, default 0\nthe default runs this\non the host" OMP_TARGET_OFFLOAD=DISABLED
OFFPATH_DIR=$dir/a refused "offloading is mandatory" OMP_TARGET_OFFLOAD=MANDATORY OMP_DEFAULT_DEVICE=3
OFFPATH_DIR=$dir/a refused "OFFPATH_REGION_SECONDS='2s': a whole number" OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_REGION_SECONDS=2s
refused "directory $dir/none is not there" OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_TARGET_DEVICES="$dir/none" OFFPATH_AUTOSTART=1 OFFPATH_DAEMON="$build/bin/offpathd"
[ ! -e "$dir/none" ] || fail "the program made the directory of a device"

start_daemon "$dir/b" "$dir/b.log" --name two
(umask 077 && head -c 32 /dev/urandom >"$dir/key")
start_daemon "$dir/c" "$dir/c.log" --name three --listen 127.0.0.1:0 --key-fd 9 --allow-images 9< <(cat "$dir/key")
OFFPATH_TARGET_DEVICES=$dir/a,$dir/b,127.0.0.1:$(cat "$dir"/c/*.port)
export OFFPATH_TARGET_DEVICES OFFPATH_KEY_FILE=$dir/key
each="[one] region of 0\non 1 devices at a time, 7\n[two] region of 1\non 1 devices at a time, 8\n[three] region of 2\non 1 devices at a time, 9
from device to device 11 22, side by side 1 2, errors 0"
says "3 devices, default 0\n[one] the default runs this\n$each" OMP_TARGET_OFFLOAD=MANDATORY
says "3 devices, default 1\n[two] the default runs this\n$each" OMP_TARGET_OFFLOAD=MANDATORY OMP_DEFAULT_DEVICE=1
says "3 devices, default 2\n[three] the default runs this\n$each" OMP_DEFAULT_DEVICE=2
refused "neither a directory, with a slash, nor ADDR" OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_TARGET_DEVICES="$dir/a,a:b:c"

info=$(command -v llvm-omp-device-info-16 || true)
if [ -n "$info" ]; then
    timeout 20 "$info" >"$dir/info.txt" 2>&1 || fail "llvm-omp-device-info ended with $?: $(cat "$dir/info.txt")"
    for name in one two three; do grep -q "offpath device $name" "$dir/info.txt" || fail "llvm-omp-device-info does not list $name"; done
fi

timeout 60 "$build/bin/offpath" info --json >"$dir/info.json" 2>"$dir/info.log" || fail "offpath info ended with $?"
for name in one two three; do grep -q "\"device\": \"$name\"" "$dir/info.json" || fail "offpath info does not list $name"; done
rm "$dir/info.log"

# One that cannot be reached is left out.
OFFPATH_TARGET_DEVICES=$dir/a,$dir/none,$dir/b timeout 20 "$program" >"$dir/out.txt" 2>"$dir/errors.log" || fail "with one missing: $?"
grep -q '^2 devices' "$dir/out.txt" || fail "with one missing: not 2 devices"
grep -q 'none.*; it is left out' "$dir/errors.log" || fail "the missing one is not named"
rm "$dir/errors.log"
