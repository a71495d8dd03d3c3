#!/usr/bin/env bash
# make.sh BUILD OUT [AARCH64_BUILD]: makes Debian packages of a build in the folder OUT, for the release of Debian that this
# machine runs (`make deb`):
#   offpath      libraries, benchmarks and applications for hosts
#   offpath-dev  headers, and what compilers, CMake and pkg-config need
#   offpathd     the daemon of devices and hosts; with AARCH64_BUILD also for arm64
# COMPRESSION=none makes them faster, and four times as large.
# All files lie in /usr/lib/offpath, in the layout of `cmake --install`; the folders that the system searches hold links to
# them. The offpath command is a Python wheel (`make wheel`).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1") out=$2 arm=${3:-}
mkdir -p "$out"
out=$(realpath "$out")
here=$PWD/packaging
version=$(sed -n 's/^project(offpath VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
stage=$(mktemp -d "${TMPDIR:-/tmp}/offpath-deb.XXXXXX")
trap 'rm -rf "$stage"' EXIT
# Equal sources give equal packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

# take PACKAGE PATHS...: moves paths below the prefix into the package.
take() {
    local to=$stage/$1/usr/lib/offpath path
    shift
    for path; do
        mkdir -p "$to/$(dirname "$path")"
        mv "$prefix/$path" "$to/$path"
    done
}
# link PACKAGE FOLDER PATHS...: makes links in /usr/FOLDER to paths below the prefix.
link() {
    local package=$1 folder=$2 path
    shift 2
    mkdir -p "$stage/$package/usr/$folder"
    for path; do ln -s -r "$stage/$package/usr/lib/offpath/$path" "$stage/$package/usr/$folder/$(basename "$path")"; done
}
# matching GLOBS...: the paths below the prefix that exist.
matching() { (cd "$prefix" && shopt -s nullglob && for path in $*; do [ ! -e "$path" ] || echo "$path"; done); }
# programs_of PACKAGE: its programs and libraries.
programs_of() { find "$stage/$1" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && echo "$1"' _ {} \;; }

# needs PACKAGE: the packages that its programs and libraries need. MPI is the user's choice.
needs() {
    local programs
    mapfile -t programs < <(programs_of "$1")
    mkdir -p "$stage/debian"
    printf 'Source: offpath\n\nPackage: offpath\nArchitecture: any\n' >"$stage/debian/control"
    (cd "$stage" && dpkg-shlibdeps -O --ignore-missing-info -l"$stage/offpathd/usr/lib/offpath/lib" \
        -l"$stage/offpath/usr/lib/offpath/lib" "${programs[@]}" 2>"$stage/shlibdeps.log") |
        sed 's/^shlibs:Depends=//' | tr , '\n' | sed 's/^ *//; s/ *\[.*//' | grep -vE '^(libopenmpi|libmpich)' | paste -sd, | sed 's/,/, /g'
}
# pack PACKAGE ARCHITECTURE DEPENDS SECTION SUMMARY MORE FIELDS...
pack() {
    local package=$1 architecture=$2 depends=$3 section=$4 summary=$5 more=$6 root=$stage/$1
    shift 6
    mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$package"
    cp LICENSE "$root/usr/share/doc/$package/copyright"
    if [ -e "$root/usr/lib/offpath/lib/libucp.so.0" ]; then
        { printf '\n\nUCX, of which this package has libraries:\n\n'; cat .venv/lib/python3*/site-packages/libucx*.dist-info/licenses/LICENSE; } \
            >>"$root/usr/share/doc/$package/copyright"
    fi
    gzip -9nc CHANGELOG.md >"$root/usr/share/doc/$package/changelog.gz"
    (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
    {
        printf '%s\n' "Package: $package" "Version: $version" "Architecture: $architecture" "Depends: $depends" \
            "Section: $section" "Priority: optional" "Maintainer: The offpath developers <offpath@localhost>" \
            "Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)" "$@" "Description: $summary"
        fold -sw 76 <<<"$more" | sed 's/ *$//; s/^/ /'
    } >"$root/DEBIAN/control"
    find "$root" -type d -exec chmod 0755 {} +
    dpkg-deb --build --root-owner-group "-Z${COMPRESSION:-xz}" "$root" "$out/${package}_${version}_$architecture.deb" >/dev/null
    echo "$out/${package}_${version}_$architecture.deb"
}
# daemon ARCHITECTURE DEPENDS: packs what `take offpathd` moved.
daemon() {
    local root=$stage/offpathd
    link offpathd bin bin/offpathd
    mkdir -p "$root/lib/systemd/system" "$root/etc/offpath" "$root/DEBIAN"
    sed 's|/usr/local/bin|/usr/bin|; s|/usr/local/share/doc/offpath/bluefield.md|/usr/share/doc/offpathd/bluefield.md|' \
        "$here/offpathd.service" >"$root/lib/systemd/system/offpathd.service"
    cp "$here/offpathd.conf" "$root/etc/offpath/"
    echo /etc/offpath/offpathd.conf >"$root/DEBIAN/conffiles"
    install -m 0755 "$here/debian/postinst" "$here/debian/prerm" "$here/debian/postrm" "$root/DEBIAN/"
    mkdir -p "$root/usr/share/doc/offpathd" "$root/usr/share/man"
    cp -r "$stage/man/man8" "$root/usr/share/man/"
    cp docs/bluefield.md docs/daemon.md docs/security.md "$root/usr/share/doc/offpathd/"
    pack offpathd "$1" "$2, adduser" net "offpath's daemon, which moves the data of HPC programs" \
        "offpathd runs on the cores of a SmartNIC (DPU), or on spare cores of a host. It moves the communication of MPI and OpenSHMEM programs while they compute. Its service is installed and not started: it needs a key first (bluefield.md)."
    rm -rf "$root"
}

daemon_files='bin/offpathd bin/offpath-kernel-host bin/offpath-target-host lib/liboffpath-region-mpi-*.so lib/libuc*.so.0 lib/ucx'
prefix=$stage/prefix
cmake --install "$build" --prefix "$prefix" >/dev/null
find "$prefix" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec sh -c 'head -c 4 "$1" | grep -q ELF && strip --strip-unneeded "$1" || true' _ {} \;

# Open MPI's packages have pages of these names, too: `man 1offpath oshrun`.
for page in "$prefix"/share/man/man1/osh*.1; do mv "$page" "${page}offpath"; done
gzip -9nr "$prefix/share/man"
mv "$prefix/share/man" "$stage/man"
mkdir -p "$stage/offpath/usr/share/man" "$stage/offpath-dev/usr/share/man/man1"
cp -r "$stage/man/man1" "$stage/offpath/usr/share/man/"
mv "$stage/offpath/usr/share/man/man1"/{offpath-clang,oshc}* "$stage/offpath-dev/usr/share/man/man1/"
take offpathd $(matching $daemon_files)
take offpath-dev include $(matching lib/cmake lib/pkgconfig lib/liboffpath.so lib/liboffpath-ranks.so bin/offpath-clang* bin/oshc*)
take offpath bin lib
rmdir "$prefix/lib" 2>/dev/null || true

# An installed compiler wrapper looks for nothing in the source tree. An administrator can put arm64 libraries below /usr/lib/offpath.
sed -i 's|OFFPATH_AARCH64_ROOT:-[^}]*}|OFFPATH_AARCH64_ROOT:-/usr/lib/offpath/aarch64}|; s|run make aarch64, or set|set|; /|| headers=/d' \
    "$stage/offpath-dev/usr/lib/offpath/bin/offpath-clang"
architecture=$(dpkg --print-architecture) triplet=$(gcc -print-multiarch)
link offpath "lib/$triplet" $(cd "$stage/offpath/usr/lib/offpath" && ls lib/liboffpath*.so.0)
link offpath-dev bin bin/offpath-clang bin/offpath-clang++
mkdir -p "$stage/offpath-dev/usr/lib/pkgconfig" "$stage/offpath-dev/usr/lib/cmake/offpath"
sed 's|^prefix=.*|prefix=${pcfiledir}/../offpath|' "$stage/offpath-dev/usr/lib/offpath/lib/pkgconfig/offpath.pc" \
    >"$stage/offpath-dev/usr/lib/pkgconfig/offpath.pc"
for file in offpath-config offpath-config-version; do
    echo "include(\"\${CMAKE_CURRENT_LIST_DIR}/../../offpath/lib/cmake/offpath/$file.cmake\")" >"$stage/offpath-dev/usr/lib/cmake/offpath/$file.cmake"
done

# The host's packages are needed to find what its programs need, so the daemon is packed last.
of_daemon=$(needs offpathd)
pack offpath "$architecture" "offpathd (= $version), iproute2, util-linux, $(needs offpath)" net \
    "takes the communication of HPC programs off the host's cores" \
    "offpath lets the cores of SmartNICs (DPUs), or spare cores, carry out the communication of MPI and OpenSHMEM programs while they compute. Programs stay unchanged. This package has the libraries, the benchmarks and example applications. The offpath command is a Python wheel." \
    "Recommends: openmpi-bin | mpich"
pack offpath-dev "$architecture" "offpath (= $version)" libdevel "files to compile programs for offpath" \
    "Headers, the files that CMake and pkg-config read, and compiler wrappers for OpenSHMEM and for OpenMP target regions." \
    "Recommends: libopenmpi-dev | libmpich-dev" "Suggests: clang-16, libomp-16-dev, lld-16"
daemon "$architecture" "$of_daemon"

if [ -n "$arm" ]; then
    prefix=$stage/prefix-arm64
    cmake --install "$(realpath "$arm")" --component offpathd --prefix "$prefix" >/dev/null
    find "$prefix" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec sh -c 'head -c 4 "$1" | grep -q ELF && aarch64-linux-gnu-strip --strip-unneeded "$1" || true' _ {} \;
    take offpathd $(matching $daemon_files)
    daemon arm64 "$of_daemon"
fi
