#!/usr/bin/env bash
# setup-aarch64.sh: the set-up step of the aarch64 build. Run scripts/setup.sh first. It has two parts:
#   1. on the host, as root or with sudo if they are missing: installs Debian's cross compiler and qemu's user mode
#   2. in build-aarch64/root, without any privilege: makes the root that aarch64 programs are built against and
#      run with, from Debian 12's arm64 packages, with UCX's aarch64 release in /opt/ucx
# The host's own packages stay as they are. The arm64 packages come through an apt state of their own. They
# are downloaded and unpacked, but never installed, and the host gets no foreign architecture. (`apt-get
# install libopenmpi-dev:arm64` would remove the host's Open MPI.) Downloads are kept in
# ~/.cache/offpath/aarch64 (OFFPATH_CACHE). OFFPATH_DEBIAN_MIRROR names a mirror other than the host's.
# Exit code: 0 if everything is there (a second run does nothing); 77 if it cannot be set up here, with the
# reason on standard error.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/${AARCH64_BUILD:-build-aarch64}
root=$build/root
cache=${OFFPATH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/offpath}/aarch64
release=bookworm

# The list is complete: it contains every library that one of these packages needs (checked below).
packages=(
    libc6 libc6-dev libcrypt1 libcrypt-dev linux-libc-dev libgcc-s1 libstdc++6 libatomic1
    libfmt9 libfmt-dev libspdlog1.10 libspdlog-dev libgtest-dev libcli11-dev nlohmann-json3-dev libsodium23 libsodium-dev libhwy1 libhwy-dev libgomp1
    libffi8 libffi-dev libomp5-16
    libhwloc15 libhwloc-dev libudev1 libcap2 libnuma1 zlib1g
    openmpi-common libopenmpi3 libopenmpi-dev libpmix2 libpmix-dev libevent-core-2.1-7 libevent-pthreads-2.1-7 libmunge2 libgfortran5
    libucx0 libfabric1 libibverbs1 ibverbs-providers librdmacm1 libnl-3-200 libnl-route-3-200 libltdl7
)
ucx=$(grep '^libucx-cu12==' requirements.txt)

unavailable() {
    echo "setup-aarch64: $*" >&2
    exit 77
}

mkdir -p "$build"
exec 9>"$build/.setup.lock"
flock 9

missing=()
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user)
if [ ${#missing[@]} -gt 0 ]; then
    sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo=(sudo -n)
        sudo -n true 2>/dev/null || unavailable "these packages are missing and you are neither root nor have sudo without a password:" \
            "${missing[*]} (install them with: apt-get install --no-install-recommends ${missing[*]})"
    fi
    echo "setup-aarch64: installing ${missing[*]}"
    plan=$("${sudo[@]}" apt-get install -s --no-install-recommends "${missing[@]}" 2>/dev/null) || {
        "${sudo[@]}" apt-get update -qq >/dev/null 2>&1 || true
        plan=$("${sudo[@]}" apt-get install -s --no-install-recommends "${missing[@]}" 2>&1) ||
            unavailable "apt-get knows no way to install ${missing[*]}: $plan"
    }
    removed=$(grep '^Remv' <<<"$plan" || true)
    [ -z "$removed" ] || unavailable "installing ${missing[*]} would remove packages of this machine: $removed"
    log=$build/.setup.log
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 || {
        # The package list may be older than the mirror's packages, so it is updated before a second try.
        "${sudo[@]}" apt-get update -qq >>"$log" 2>&1 || true
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >>"$log" 2>&1
    } || unavailable "apt-get could not install ${missing[*]}: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log") (all of it: $log)"
fi

stamp=$root/.offpath-setup
wanted=$(echo "$release ${packages[*]} $ucx" | cat - "$0" | sha256sum | cut -d' ' -f1)
[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || exit 0

# apt with a state of its own in the cache: another architecture, no installed packages, the host's proxies.
private_apt() {
    local state=$cache/apt mirror=${OFFPATH_DEBIAN_MIRROR:-} conf
    mkdir -p "$state"/{lists/partial,archives/partial,sources}
    : >"$state/status"
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
        awk -v release=$release '$2 == release && !found { print $1; found = 1 }')
    mirror=${mirror:-http://deb.debian.org/debian}
    cat >"$state/sources/debian.sources" <<SOURCES
Types: deb
URIs: $mirror
Suites: $release $release-updates
Components: main
Architectures: arm64
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
    conf=$state/apt.conf
    {
        apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries)' || true
        cat <<CONF
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Etc::parts "/dev/null";
Dir::Etc::main "/dev/null";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$state/sources";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
CONF
    } >"$conf"
    APT_CONFIG=$conf apt-get update -qq -o APT::Update::Error-Mode=any -o Acquire::Retries=1 || unavailable "the arm64 package list of $mirror cannot be had (see above)"
    (cd "$cache/debs" && APT_CONFIG=$conf apt-get download -qq "$@") || unavailable "arm64 packages cannot be had from $mirror (see above)"
    rm -rf "$state"
}

cached() { compgen -G "$cache/debs/$1_*.deb" >/dev/null; }

mkdir -p "$cache/debs" "$cache/wheels"
wanting=()
for package in "${packages[@]}"; do cached "$package" || wanting+=("$package"); done
if [ ${#wanting[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || unavailable "there is no apt-get here; the arm64 root is made of Debian's packages"
    echo "setup-aarch64: downloading ${#wanting[@]} arm64 packages"
    private_apt "${wanting[@]}"
fi
version=${ucx#*==}
wheel=$(compgen -G "$cache/wheels/libucx_cu12-$version-*aarch64.whl" | head -n 1 || true)
if [ -z "$wheel" ]; then
    echo "setup-aarch64: downloading UCX $version for aarch64"
    python=.venv/bin/python
    [ -x $python ] || python=python3
    $python -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux_2_28_aarch64 \
        -d "$cache/wheels" "$ucx" || unavailable "the aarch64 wheel of $ucx cannot be had (see above)"
    wheel=$(compgen -G "$cache/wheels/libucx_cu12-$version-*aarch64.whl" | head -n 1)
fi

echo "setup-aarch64: unpacking into ${root#"$PWD"/}"
fresh=$root.new
rm -rf "$fresh"
mkdir -p "$fresh/opt/ucx"
for package in "${packages[@]}"; do
    for deb in "$cache/debs/${package}"_*.deb; do dpkg-deb -x "$deb" "$fresh"; done
done
# LLVM's OpenMP run time for kernels. Device images are linked against it. clang's linker wrapper also wants
# two archives with these names, which are empty here.
openmp=$fresh/usr/lib/llvm-16/lib
find "$openmp" -type f ! -name 'libomp*.so.5' -delete
find "$openmp" -xtype l -delete
ln -sf "$(basename "$(find "$openmp" -name 'libomp*.so.5' | head -n 1)")" "$openmp/libomp.so"
echo | aarch64-linux-gnu-gcc -c -x c - -o "$fresh/nothing.o"
for archive in libomptarget libomptarget.devicertl; do aarch64-linux-gnu-ar rcs "$openmp/$archive.a" "$fresh/nothing.o"; done
rm "$fresh/nothing.o"
# The wheel's headers, libraries and tools, without static libraries and without anything for CUDA.
python3 - "$wheel" "$fresh/opt/ucx" <<'PYTHON'
import pathlib, re, sys, zipfile

wheel, prefix = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
wanted = re.compile(r"libucx/(include/.+|lib/(?:ucx/)?lib[a-z_]+\.so(?:\.0)?|bin/ucx_(?:info|perftest))$")
for name in wheel.namelist():
    found = wanted.match(name)
    if not found or name.endswith("/") or "cuda" in name:
        continue
    target = prefix / found[1]
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".so" and name + ".0" in wheel.namelist():
        target.symlink_to(target.name + ".0")
        continue
    target.write_bytes(wheel.read(name))
    if "/bin/" in name:
        target.chmod(0o755)
PYTHON
rm -rf "$fresh"/usr/share/{doc,man,lintian,bug} "$fresh"/usr/src

# A library that is missing would show only at run time, and under qemu the host's would be tried in its place.
# (readelf stumbles over the linker scripts among them.)
open=$( (find "$fresh" -name '*.so*' -type f -exec aarch64-linux-gnu-readelf -d {} + 2>/dev/null || true) |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | while read -r library; do
    [ -n "$(find "$fresh" -name "$library" -print -quit)" ] || echo "$library"
done)
[ -z "$open" ] || unavailable "the arm64 root lacks $(tr '\n' ' ' <<<"$open")- the list of packages in scripts/setup-aarch64.sh needs the packages that hold them"
echo "$wanted" >"$fresh/.offpath-setup"
rm -rf "$root"
mv "$fresh" "$root"
