#!/usr/bin/env bash
# deb_test.sh BUILD PYTHON: makes Debian packages of the build and the command's wheel, and installs them below an empty root.
# Programs outside are compiled with them, and the command runs programs with them. A purge leaves nothing.
set -euo pipefail
build=$1 python=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "deb_test.sh: skipped: $tool is not here" >&2; exit 77; }
done
if [ "$(id -u)" != 0 ]; then
    unshare -r true 2>/dev/null || { echo "deb_test.sh: skipped: dpkg needs root, or user namespaces" >&2; exit 77; }
    exec unshare -r "$0" "$@"
fi
. "$here/../support/daemons.sh"
packages=$dir/packages system=$dir/root
COMPRESSION=none "$root/packaging/debian/make.sh" "$build" "$packages" >"$dir/made.log" 2>&1 || fail "the packages cannot be made"
"$root/packaging/wheel.sh" "$python" "$packages" >"$dir/wheel.log" 2>&1 || fail "the wheel cannot be made"

mkdir -p "$system"/var/lib/dpkg/{info,updates}
touch "$system/var/lib/dpkg/status"
# What the packages need is installed on this machine, not below that root.
package() { dpkg --root="$system" --force-depends --force-script-chrootless --log=/dev/null "$@" >>"$dir/dpkg.log" 2>&1; }
package --install "$packages"/*.deb || fail "the packages cannot be installed"
prefix=$system/usr/lib/offpath

# Nothing looks outside of what is installed, and everything that must be there is.
for file in "$prefix"/bin/* "$prefix"/lib/lib[^u]*.so "$prefix"/lib/openmp/*.so; do
    if ldd "$file" 2>/dev/null | grep 'not found' >"$dir/missing.log"; then fail "$file lacks a library"; fi
    if ldd "$file" 2>/dev/null | grep -vE '=> (/usr|/lib)|=> '"$prefix"'/|linux-vdso|ld-linux|statically' >"$dir/missing.log"; then
        fail "$file uses libraries of elsewhere"
    fi
    # An empty part would be the working directory. UCX's own libraries are not in this list.
    if readelf -d "$file" 2>/dev/null | grep -E 'R(UN)?PATH' | grep -vE '\[(\$ORIGIN/\.\.:)?(\$ORIGIN/\.\./lib|/usr/lib/llvm-16/lib)\]$' >"$dir/missing.log"; then
        fail "$file looks for libraries elsewhere"
    fi
done
! grep -rlIF "$(realpath "$root")" "$system" | grep . || fail "the files above name the source tree"

for page in man1/offpath-run.1.gz man1/oshrun.1offpath.gz man1/oshcc.1offpath.gz man1/offpath-clang.1.gz man8/offpathd.8.gz; do
    [ -s "$system/usr/share/man/$page" ] || fail "the packages have no $page"
done

# apt must be able to install them beside Debian's packages, of which this machine has those that offpath builds on.
for package in "$packages"/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar t | sed -n 's|^\.\(/.*[^/]\)$|\1|p'
done | sort -u | xargs -d '\n' dpkg -S 2>/dev/null | grep -v '^offpath' >"$dir/owned.log" || true
[ ! -s "$dir/owned.log" ] || fail "packages of Debian have these files, too: $(cat "$dir/owned.log")"

# Programs of others.
cmake -S "$here/outside" -B "$dir/outside" -DCMAKE_PREFIX_PATH="$system/usr" -DWANTED=0.1 -DEXAMPLES="$root/examples" >"$dir/configure.log" 2>&1 ||
    fail "find_package(offpath) failed"
cmake --build "$dir/outside" >"$dir/build.log" 2>&1 || fail "a project with find_package(offpath) cannot be built"
read -ra words <<<"$(PKG_CONFIG_PATH=$system/usr/lib/pkgconfig pkg-config --cflags --libs offpath)"
cc "$root/examples/basic_primitives.c" -o "$dir/primitives" "${words[@]}"
export OFFPATH_DIR=$dir/devices OFFPATH_IDLE_EXIT=60
at_end() {
    local file
    for file in "$OFFPATH_DIR"/*.pid; do [ ! -f "$file" ] || kill "$(cat "$file")" || true; done
}
# The loader finds the library by its link in the system's folder, and the library its daemon by following that link.
LD_LIBRARY_PATH=$(dirname "$(find "$system/usr/lib" -maxdepth 2 -name liboffpath.so.0)") OFFPATH_AUTOSTART=1 "$here/../mpirun.sh" 2 "$dir/primitives" ||
    fail "a program failed on the installed library"
process=$(pgrep -f -- "--dir $OFFPATH_DIR") || fail "no daemon served it"
[ "$(readlink "/proc/$process/exe")" = "$prefix/bin/offpathd" ] || fail "another daemon than the installed one served it"
at_end

# The command. Python's search finds the wheel first.
"$python" -m pip -q install --no-deps --no-compile --target "$dir/site" "$packages"/offpath-*.whl >"$dir/install.log" 2>&1 || fail "the wheel cannot be installed"
cd "$dir"
unset OFFPATH_BUILD
export PATH=$system/usr/bin:$PATH
env PYTHONPATH="$dir/site" OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$python" -m offpath run -- mpirun -n 2 "$prefix/bin/fft3d" --n 32 --iterations 2 >"$dir/run.log" 2>&1 ||
    fail "offpath run failed with the packages"
grep -q '^offpath:' "$dir/run.log" || fail "offpath run says nothing of offload"

package --purge offpath-dev offpath offpathd || fail "the packages cannot be removed"
left=$(find "$system" -path "$system/var/lib/dpkg" -prune -o -type f -print -o -type l -print)
[ -z "$left" ] || fail "a purge leaves $left"
left=$(find "$system" -mindepth 1 -path "$system/var" -prune -o -type d -print)
[ -z "$left" ] || fail "a purge leaves the folders $left"
