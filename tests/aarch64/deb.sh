#!/usr/bin/env bash
# deb.sh BUILD AARCH64_BUILD: makes the arm64 package of the daemon, installs it below an empty root, and runs it under qemu with the UCX
# that the cross build's root has, as on a card with the vendor's. An x86-64 program attaches to it. A purge leaves nothing.
# Exit code 77, with the reason: dpkg cannot do that here.
set -euo pipefail
build=$(realpath "$1") arm=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
command -v dpkg-shlibdeps >/dev/null || { echo "deb.sh: skipped: dpkg-shlibdeps is not here" >&2; exit 77; }
if [ "$(id -u)" != 0 ]; then
    unshare -r true 2>/dev/null || { echo "deb.sh: skipped: dpkg needs root, or user namespaces" >&2; exit 77; }
    exec unshare -r "$0" "$@"
fi
. "$root/tests/support/daemons.sh"
packages=$dir/packages system=$dir/root
COMPRESSION=none "$root/packaging/debian/make.sh" "$build" "$packages" "$arm" >"$dir/made.log" 2>&1 || fail "the packages cannot be made"
package=$(echo "$packages"/offpathd_*_arm64.deb)
[ "$(dpkg-deb -f "$package" Architecture)" = arm64 ] || fail "the package is for another architecture"
dpkg-deb -f "$package" Depends | grep -q libc6 || fail "the package names no packages that it needs"

mkdir -p "$system"/var/lib/dpkg/{info,updates}
touch "$system/var/lib/dpkg/status"
dpkg_there() {
    dpkg --root="$system" --force-depends --force-architecture --force-script-chrootless --log=/dev/null "$@" >>"$dir/dpkg.log" 2>&1
}
dpkg_there --install "$package" || fail "the package cannot be installed"
installed=$system/usr/lib/offpath/bin/offpathd
[ "$(readlink -f "$system/usr/bin/offpathd")" = "$(readlink -f "$installed")" ] || fail "/usr/bin/offpathd is not the installed one"
for file in "$system"/usr/lib/offpath/bin/* "$system"/usr/lib/offpath/lib/*.so*; do
    [ -e "$file" ] || continue
    readelf -h "$file" | grep -q AArch64 || fail "$file is for another architecture"
    if readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -vE '\[\$ORIGIN/\.\./lib(:/opt/ucx/lib)?\]$' >"$dir/paths.log"; then fail "$file looks for libraries elsewhere"; fi
done

# What a loader on a card does by its own configuration.
daemon_prefix=(qemu-aarch64 -E LD_LIBRARY_PATH=/opt/ucx/lib -L "$arm/root")
offpathd=$installed
listen_options
start_daemon "$dir/device" "$dir/device.log" "${listen[@]}"
use_device "$dir/device"
"$root/tests/mpirun.sh" 2 "$build/bin/example-basic-primitives" >"$dir/job.log" 2>&1 || fail "a program failed at the installed daemon"
grep -q 'rank 1 of job' "$dir/device.log" || fail "the program has not attached to it"
end_daemon

dpkg_there --purge offpathd || fail "the package cannot be removed"
left=$(find "$system" -path "$system/var/lib/dpkg" -prune -o -type f -print -o -type l -print)
[ -z "$left" ] || fail "a purge leaves $left"
