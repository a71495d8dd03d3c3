#!/usr/bin/env bash
# package_test.sh BUILD: installs the build and moves what was installed. Then programs outside of the tree are built in all ways that the docs name,
# and run: by find_package, by pkg-config, by oshcc, and by offpath-clang.
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
. "$here/../support/daemons.sh"
prefix=$dir/prefix
cmake --install "$build" --prefix "$dir/first" >"$dir/install.log"
mv "$dir/first" "$prefix"
for page in man1/offpath.1 man1/offpath-run.1 man1/offpath-lab-compare.1 man8/offpathd.8; do
    grep -q '^\.SH OPTIONS' "$prefix/share/man/$page" || fail "no manual page $page with options is installed"
done
for tool in oshrun oshcc oshc++ oshcxx offpath-clang offpath-clang++; do
    grep -q '^\.SH DESCRIPTION' "$prefix/share/man/man1/$tool.1" || fail "no manual page of $tool is installed"
done

configured() {  # VERSION: as a project that asks for that release
    cmake -S "$here/outside" -B "$dir/outside-$1" -DCMAKE_PREFIX_PATH="$prefix" -DWANTED="$1" -DEXAMPLES="$root/examples" >"$dir/configure.log" 2>&1
}
uses_prefix() {  # PROGRAM LIBRARY
    ldd "$1" | grep -F "$2" | grep -qF "$prefix/lib/" || fail "$1 does not use the $2 that was installed"
}
if configured 99.0; then fail "find_package(offpath 99.0) was content with this release"; fi
configured 0.1 || fail "a project with find_package(offpath) cannot be configured"
cmake --build "$dir/outside-0.1" >"$dir/build.log" 2>&1 || fail "it cannot be built"

read -ra words <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs offpath)"
cc "$root/examples/basic_primitives.c" -o "$dir/primitives" "${words[@]}" -Wl,-rpath,"$prefix/lib"
"$prefix/bin/oshcc" "$here/outside/ring.c" -o "$dir/ring"

# A target region, on a daemon of the prefix, with the plug-ins there.
OFFPATH_DEVICE_ARCHITECTURES=x86_64 "$prefix/bin/offpath-clang" -fopenmp -O1 "$root/examples/openmp/hello.c" -o "$dir/hello"
"$here/../openmp/run.sh" "$prefix" local "$dir/hello" "$root/examples/openmp/hello.txt" || fail "a target region failed on the installed plug-ins"

# Daemons that programs start are those beside their library.
export OFFPATH_DIR=$dir/devices OFFPATH_IDLE_EXIT=1 OFFPATH_AUTOSTART=1
for program in "$dir/outside-0.1/primitives" "$dir/primitives"; do
    uses_prefix "$program" liboffpath.so
    "$here/../mpirun.sh" 2 "$program" || fail "$program failed on the installed library"
done
for program in "$dir/outside-0.1/ring" "$dir/ring"; do
    uses_prefix "$program" liboffpath-shmem.so
    OMPI_MCA_hwloc_base_binding_policy=none timeout -k 5 60 "$prefix/bin/oshrun" -n 2 "$program" || fail "$program failed on the installed library"
done
