#!/usr/bin/env bash
# The one set-up step: Debian packages and the pinned Python environment in .venv. `setup.sh tests` also
# installs what only tests need: a browser, groff, SimGrid, systemd and Slurm; `setup.sh coverage` gcovr, too, and
# `setup.sh rdma` what guests with RDMA devices need.
# Safe to run again; it does nothing when all is there.
# Needs Debian 12 or a relative of it, and root or sudo only while packages are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

case $PWD in
    *[[:space:]]*)
        echo "setup: the folder '$PWD' has a space in its name, which launchers of MPI do not bear; clone into another one" >&2
        exit 1
        ;;
esac

packages=(
    build-essential cmake ninja-build pkg-config ccache git ca-certificates
    mold clang-16 clang-tools-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev libomp-16-dev lld-16
    openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran libucx-dev libpmix-dev
    libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev
    libgtest-dev libbenchmark-dev libfftw3-dev libopenblas-dev libsodium-dev libhwy-dev libffi-dev otf2-tools
    iproute2 util-linux procps lammps-data libslurm-dev python3 python3-venv python3-mpi4py
)
# Packages of services. The tests start the programs themselves, so the services stay off. On a machine with a
# slurm.conf, which belongs to a cluster, they are not installed.
services=()
if [ "${1:-}" = coverage ]; then
    packages+=(gcovr)
fi
if [ "${1:-}" = rdma ]; then
    packages+=(qemu-system-x86 busybox-static cpio kmod xz-utils rdma-core ibverbs-providers)
fi
if [ -n "${1:-}" ]; then
    packages+=(chromium-headless-shell groff-base libsimgrid-dev systemd)
    [ -e /etc/slurm/slurm.conf ] || services=(munge slurmctld slurmd)
fi

missing=() off=
for package in "${packages[@]}" "${services[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" != installed ] || continue
    missing+=("$package")
    case " ${services[*]} " in *" $package "*) off+=" $package" ;; esac
done
# Runs as root. Debian starts a new service at once, unless policy-rc.d exits with 101, and at every boot.
install='
    policy=/usr/sbin/policy-rc.d
    if [ -n "$OFF" ] && [ ! -e $policy ]; then
        trap "rm -f $policy" EXIT
        printf "#!/bin/sh\nexit 101\n" >$policy
        chmod +x $policy
    fi
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    for service in $OFF; do update-rc.d "$service" disable; done'
if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: installing ${missing[*]}"
    sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "setup: these packages are missing and you are neither root nor have sudo: ${missing[*]}" >&2
            exit 1
        }
        sudo=(sudo)
    fi
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes OFF="$off" bash -euc "$install" install "${missing[@]}"
    # A build that was configured without them looks again.
    [ ! -f build/CMakeCache.txt ] || touch build/CMakeCache.txt
fi

# python_packages STAMP FILE: installs the packages of a file, unless its stamp says that they are there.
python_packages() {
    local stamp=.venv/$1 wanted
    wanted=$(cat "$2" pyproject.toml | sha256sum | cut -d' ' -f1)
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    echo "setup: installing Python packages in .venv ($2)"
    [ -x .venv/bin/python ] || /usr/bin/python3 -m venv .venv
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-compile -r "$2"
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
    echo "$wanted" >"$stamp"
}
python_packages offpath-setup.sha256 requirements.txt
[ -z "${1:-}" ] || python_packages offpath-setup-tests.sha256 requirements-tests.txt
