#!/usr/bin/env bash
# installed_test.sh BUILD: installs offpath, builds minimd on that, by itself, and installs it, too. What was installed then runs: alone, and
# with devices, whose daemon is the installed one. The tables have to be those of BUILD's minimd.
set -euo pipefail
build=$1
tests=$(cd "$(dirname "$0")/../../../tests" && pwd)
. "$tests/support/daemons.sh"
prefix=$dir/prefix
cmake --install "$build" --prefix "$prefix" >"$dir/install.log"

# Quick to compile rather than fast. ccache serves a later run of this test, also in another tree: everything is below a
# folder whose name it does not see.
mkdir "$dir/apps" "$dir/src"
cp -r "$tests/../apps/minimd" "$tests/../apps/support" "$dir/apps"
cp -r "$tests/../src/command_line" "$dir/src"
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER="cmake;-E;env;CCACHE_BASEDIR=$dir;CCACHE_NOHASHDIR=1;ccache")
fi
cmake -S "$dir/apps/minimd" -B "$dir/minimd" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= -DCMAKE_UNITY_BUILD=ON "${launcher[@]}" >"$dir/configure.log" 2>&1 || fail "minimd cannot be configured"
cmake --build "$dir/minimd" -j 2 --target minimd >"$dir/build.log" 2>&1 || fail "minimd cannot be built"
cmake --install "$dir/minimd" >>"$dir/install.log"
mv "$dir/minimd" "$dir/moved"
libraries=$(ldd "$prefix/bin/minimd")
for library in liboffpath.so liboffpath-ranks.so; do
    grep -F "$library" <<<"$libraries" | grep -qF "$prefix/lib/" || fail "minimd does not use the $library that was installed"
done

run() {  # PROGRAM NAME ARGS...: leaves NAME.json
    timeout -k 5 120 "$tests/mpirun.sh" 2 "$1" -s 4 -n 20 --skin-check off --json "$dir/$2.json" "${@:3}" >"$dir/$2.log" 2>&1 || fail "$1 ended with $?"
}
export OMP_WAIT_POLICY=passive
run "$build/bin/minimd" wanted
run "$prefix/bin/minimd" alone
export OFFPATH_DIR=$dir/devices OFFPATH_AUTOSTART=1 OFFPATH_IDLE_EXIT=1
run "$prefix/bin/minimd" ghosts --halo offloaded
run "$prefix/bin/minimd" forces --device-kind runtime --offpath paper
python3 - "$dir" <<'PYTHON'
import json, sys
wanted, alone, ghosts, forces = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("wanted", "alone", "ghosts", "forces"))
assert ghosts["halo"] == "offloaded" and ghosts["offloaded_bytes"] > 0, ghosts
assert forces["device_share"] == 1, forces
for done in (alone, ghosts, forces):
    for row, row_wanted in zip(done["thermo"], wanted["thermo"], strict=True):
        for key in "tup":
            assert abs(row[key] - row_wanted[key]) <= 1e-9 * max(1.0, abs(row_wanted[key])), (row, row_wanted)
PYTHON
