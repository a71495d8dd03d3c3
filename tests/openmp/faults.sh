#!/usr/bin/env bash
# faults.sh BUILD PROGRAM [remote]: target regions that end badly, on a local device or on one as if on a system of its own. The program gets a message that says what happened; the daemon, and
# another program with regions on the same device, go on.
set -euo pipefail
build=$1 program=$2 attach=${3:-local}
# shellcheck source=tests/support/daemons.sh
. "$(dirname "$0")/../support/daemons.sh"
export LD_LIBRARY_PATH=$build/lib/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# ends WAY WORDS: the program ends with an error, and its errors have WORDS.
ends() {
    local way=$1 words=$2 code=0
    OMP_TARGET_OFFLOAD=MANDATORY timeout 60 "$program" "$way" >"$dir/$way.txt" 2>"$dir/$way.log" || code=$?
    [ $code -ne 124 ] || fail "$way: not over after 60 s"
    [ $code -ne 0 ] || fail "$way: ended well"
    grep -q "$words" "$dir/$way.log" || fail "$way: nobody said '$words'"
    grep -qx 'x 2' "$dir/$way.txt" || fail "$way: the first region did not run"
    rm "$dir/$way.log"
}

# none_left AFTER: the daemon has no process for any program.
none_left() {
    for _ in {1..300}; do
        pgrep -P "$daemon" -f offpath-target-host >"$dir/left.txt" || return 0
        sleep 0.1
    done
    fail "target hosts are left after $1: $(cat "$dir/left.txt")"
}

start_target_device "$attach" --log-level debug
ends crash 'device dpu0: .*_main_l[0-9]* ended with signal 11'
ends abort 'device dpu0: .*_main_l[0-9]* ended with signal 6'
ends exit 'device dpu0: .*_main_l[0-9]* called exit()'
ends kill 'device dpu0: .*ended without a word'
ends stack 'device dpu0: .*_main_l[0-9]* ended with signal 11'
ends memory 'device dpu0: no memory: 17592186044416 bytes'
ends between 'device dpu0: .*ended without a word'
# What finished regions have stored in small arrays is the program's as well, if it shares memory with the device.
ends between-small 'device dpu0: .*ended without a word'
if [ "$attach" = local ]; then
    grep -qx kept "$dir/between-small.txt" || fail "between-small: data of a finished region are lost"
fi
# The first region has to end within this time, too.
OFFPATH_REGION_SECONDS=3 ends endless 'device dpu0: .*_main_l[0-9]* did not end within OFFPATH_REGION_SECONDS=3'
OFFPATH_REGION_SECONDS=3 ends endless-nowait 'device dpu0: .*did not end within OFFPATH_REGION_SECONDS=3'
none_left "an endless region"
# A long region shows signs of life.
OFFPATH_TARGET_PATIENCE=6 OFFPATH_REGION_SECONDS=8 ends endless 'device dpu0: .*did not end within OFFPATH_REGION_SECONDS=8'
none_left "a long region"

# begin_endless NAME: starts a program in the background, and returns when its region runs.
begin_endless() {
    : >"$dir/$1.txt"
    OMP_TARGET_OFFLOAD=MANDATORY "$program" endless >"$dir/$1.txt" 2>"$dir/$1.log" &
    endless=$!
    for _ in {1..600}; do
        grep -qx '.dpu0. begins' "$dir/$1.txt" && return
        sleep 0.1
    done
    fail "the endless region does not begin"
}

# Its process on the device is stopped.
OFFPATH_TARGET_PATIENCE=3 begin_endless stopped
stopped=$(pgrep -P "$(pgrep -P "$daemon" -f offpath-target-host)")
[ "$(cat "/proc/$stopped/oom_score_adj")" = 1000 ] || fail "a lack of memory would not end the process of the regions first"
kill -STOP "$stopped"
for _ in {1..300}; do
    kill -0 "$endless" 2>/dev/null || break
    sleep 0.1
done
kill -0 "$endless" 2>/dev/null && fail "30 s after its process was stopped the program has noticed nothing"
wait "$endless" && fail "the program whose process was stopped ends well"
grep -q 'device dpu0: .*no sign of life from its process on the device for 3 s' "$dir/stopped.log" || fail "the stopped process is not told"
rm "$dir/stopped.log"
# The device may have ended it by now.
kill -CONT "$stopped" 2>/dev/null || true
none_left "a stopped process"

# A program that is killed while its region runs leaves nothing behind.
begin_endless killed
kill -9 "$endless"
wait "$endless" 2>/dev/null || true
none_left "a killed program"
rm "$dir/killed.log"
kill -0 "$daemon" || fail "the daemon is gone"
OMP_TARGET_OFFLOAD=MANDATORY timeout 60 "$program" >"$dir/good.txt" || fail "a good program fails after the bad ones"
if [ "$attach" = remote ]; then
    rm -f "$dir/key"
    exit 0
fi

# Code for the wrong machine, and code that the device cannot link.
# builds: makes a program whose region calls a function of a library, which host and device have each.
printf '#include <stdio.h>\n#pragma omp declare target\nint elsewhere(int);\n#pragma omp end declare target\n
int main(void) {\n int x = 1;\n#pragma omp target map(tofrom : x)\n x = elsewhere(x);\n printf("x %%d\\n", x);\n return 0;\n}\n' >"$dir/links.c"
printf 'int elsewhere(int x) {\n return x + 1;\n}\n' >"$dir/elsewhere.c"
cc -shared -fPIC "$dir/elsewhere.c" -o "$dir/libelsewhere.so"
cp "$dir/libelsewhere.so" "$dir/libdevice.so"
offload=-Xoffload-linker-x86_64-pc-linux-gnu
builds() {
    OFFPATH_DEVICE_ARCHITECTURES=x86_64 "$build/bin/offpath-clang" -fopenmp -O1 "$dir/links.c" "$dir/libelsewhere.so" -Wl,-rpath,"$dir" -o "$dir/links" \
        $offload "-L$dir" $offload -ldevice $offload "-rpath=$dir" >"$dir/links.log" 2>&1 || fail "a program with a library on both sides is not built"
    rm "$dir/links.log"
}
# tells WORDS
tells() {
    local words=$1 code=0
    OMP_TARGET_OFFLOAD=MANDATORY timeout 60 "$dir/links" >"$dir/links.txt" 2>"$dir/links.log" || code=$?
    [ $code -ne 0 ] && [ $code -ne 124 ] || fail "'$words': the program ended with $code"
    grep -q "device dpu0: the program's image cannot be loaded: .*$words" "$dir/links.log" || fail "nobody said '$words'"
    rm "$dir/links.log"
}
if [ "$(uname -m)" = x86_64 ]; then
    builds
    OMP_TARGET_OFFLOAD=MANDATORY timeout 60 "$dir/links" >"$dir/links.txt" || fail "with its library a program fails"
    echo 'int another;' | cc -shared -fPIC -xc - -o "$dir/libdevice.so"
    tells "undefined symbol: elsewhere"
    rm "$dir/libdevice.so"
    tells "libdevice.so: cannot open shared object file"
    # Code counts as that of another machine if its ELF header says so.
    python3 - "$dir/links" <<'END'
import pathlib, sys
program = pathlib.Path(sys.argv[1])
data = bytearray(program.read_bytes())
at = data.find(b"\x7fELF\x02", 1)
while at > 0:
    if data[at + 16 : at + 20] == b"\x03\x00\x3e\x00":
        data[at + 18] = 183
    at = data.find(b"\x7fELF\x02", at + 1)
program.write_bytes(data)
END
    timeout 60 "$dir/links" >"$dir/links.txt" 2>"$dir/links.log" || fail "without code for its device a program ends with $?"
    diff <(echo "offpath: the program has target regions for aarch64, and device dpu0 is x86-64: it runs none of them [OFP-0404]") "$dir/links.log" >&2 ||
        fail "that the device runs no region is not told in one line"
    grep -qx 'x 2' "$dir/links.txt" || fail "without code for its device the region does not run on the host"
    rm "$dir/links.log"
fi
end_daemon

# The device's own limit, and that of a program, which comes first.
start_daemon "$dir/s" "$dir/daemon.log" --name dpu0 --log-level debug --kernel-seconds 1
ends endless 'device dpu0: .*_main_l[0-9]* did not end within offpathd --kernel-seconds=1'
OFFPATH_REGION_SECONDS=2 ends endless 'device dpu0: .*did not end within OFFPATH_REGION_SECONDS=2'
end_daemon

# No device: regions run on the host, and one line says why.
timeout 60 "$program" >"$dir/host.txt" 2>"$dir/host.log" || fail "without a device the program fails"
grep -qx end "$dir/host.txt" || fail "without a device the program does not end"
[ "$(grep -c 'target regions run on the host' "$dir/host.log")" = 1 ] || fail "not one line about the missing device"
rm "$dir/host.log"
OFFPATH=off timeout 60 "$program" >"$dir/off.txt" 2>"$dir/off.log" || fail "switched off, the program fails"
[ ! -s "$dir/off.log" ] || fail "switched off, something is said"

# The administrator allows no code of programs.
start_daemon "$dir/s" "$dir/daemon.log" --name dpu0 --log-level debug --no-kernels
timeout 60 "$program" >"$dir/refused.txt" 2>"$dir/refused.log" || fail "refused, the program fails"
grep -q 'runs no code of programs (offpathd --no-kernels); target regions run on the host' "$dir/refused.log" || fail "the refusal is not told"
rm "$dir/refused.log"
end_daemon
