#!/usr/bin/env bash
# openmp.sh BUILD AARCH64-BUILD examples|cases|mpi: programs with target regions, compiled for devices of both architectures, on an emulated
# aarch64 device.
#   examples   those of examples/openmp, one of them on two devices
#   cases      programs of many cases: mapping, execution, objects; images that are kept
#   mpi        programs whose regions call MPI, and halo, as 2 ranks of Open MPI
set -euo pipefail
build=$(realpath "$1") arm=$2 part=$3
here=$(realpath "$(dirname "$0")/..")
examples=$here/../examples/openmp
room=$(mktemp -d "${TMPDIR:-/tmp}/offpath-test.XXXXXX")
trap 'rm -rf "$room"' EXIT
export OFFPATH_AARCH64_ROOT=$arm/root OFFPATH_DEVICE_ARCHITECTURES=x86_64,aarch64 OFFPATH_BUILD_AARCH64=$arm

# make SOURCE FLAGS...: compiles it to $program.
make() {
    local source=$1 compiler=offpath-clang
    shift
    case $source in *.cpp) compiler=offpath-clang++ ;; esac
    program=$room/$(basename "${source%.*}")
    "$build/bin/$compiler" -fopenmp -O1 -Wno-pass-failed "$source" -o "$program" "$@"
}

# alone SOURCE: it runs without MPI.
alone() {
    "$here/openmp/run.sh" "$build" aarch64 "$program" "${1%.*}.txt"
    echo "$(basename "$program")${DEVICES:+ on $DEVICES devices}: right"
}

run_examples() {
    local source device
    for source in "$examples"/*.c*; do
        case $source in */mpi_* | */library.c | */shared_library.c) continue ;; *.cpp | *.c) ;; *) continue ;; esac
        make "$source"
        alone "$source"
        case $source in */ping_pong.c) DEVICES=2 alone "$source" ;; esac
    done
    # A library on both sides: the host's, and the device's of its own architecture.
    mkdir "$room/host" "$room/aarch64"
    clang-16 -O1 -shared -fPIC "$examples/library.c" -o "$room/host/libnorm.so"
    aarch64-linux-gnu-gcc --sysroot="$arm/root" -O1 -shared -fPIC "$examples/library.c" -o "$room/aarch64/libnorm.so"
    device=-Xoffload-linker-aarch64-unknown-linux-gnu
    make "$examples/shared_library.c" -L"$room/host" -lnorm -Wl,-rpath,"$room/host" \
        $device -L"$room/aarch64" $device -lnorm $device -rpath="$room/aarch64"
    alone "$examples/shared_library.c"
    # As courses link it: devices of one architecture, and one option for all of them.
    device=-Wl,--device-linker=
    make "$examples/shared_library.c" -fopenmp-targets=aarch64-unknown-linux -L"$room/host" -lnorm -Wl,-rpath,"$room/host" \
        "$device-L$room/aarch64" "$device-lnorm" "$device-rpath" "$device$room/aarch64"
    alone "$examples/shared_library.c"
}

run_cases() {
    local source version
    for source in "$here"/openmp/{mapping_cases.c,execution_cases.c,object_cases.cpp}; do
        make "$source"
        alone "$source"
        echo "  $(wc -l <"${source%.*}.txt") cases"
    done
    for version in 1 2; do
        make "$here/openmp/images.c" -DVERSION=$version
        mv "$program" "$program-$version"
    done
    "$here/openmp/images.sh" "$build" aarch64 "$program-1" "$program-2"
    echo "images: right"
}

run_mpi() {
    local flags source expected
    command -v mpicc.openmpi >/dev/null || {
        echo "regions that call MPI: skipped, because Open MPI's compiler wrapper is missing"
        return
    }
    read -ra flags <<<"$(mpicc.openmpi --showme:compile) $(mpicc.openmpi --showme:link)"
    for source in "$examples"/mpi_*.c "$here"/openmp/{mpi_types.c,mpi_regions_at_once.c,mpi_operations.c}; do
        expected=${source%.*}.txt
        [ -e "$expected" ] || expected=$here/openmp/no_errors.txt
        make "$source" "${flags[@]}"
        "$here/openmp/mpi.sh" "$build" aarch64 openmpi 2 "$expected" "$program"
        echo "$(basename "$program"): right"
    done
    [ -x "$build/bin/halo" ] || return 0
    # halo looks for its regions beside itself. They are built here for both architectures; the build may have been made without the arm64 root.
    mkdir "$room/bin" "$room/lib"
    cp "$build/bin/halo" "$room/bin/"
    "$build/bin/offpath-clang++" -std=c++20 -O3 -ffp-contract=off -fopenmp -fPIC -fvisibility=hidden -shared "${flags[@]}" -I"$here/../apps" \
        "$here/../apps/halo/target_regions.cpp" -o "$room/lib/libhalo-target-openmpi.so"
    local domain=(--dims 2 --size 61 --steps 9 --json -) sum='"checksum":"[0-9a-f]*"'
    OFFPATH=off "$here/mpirun.sh" 2 "$room/bin/halo" "${domain[@]}" --variant mpi | grep -oE "$sum" >"$room/halo.txt"
    ONLY=$sum "$here/openmp/mpi.sh" "$build" aarch64 openmpi 2 "$room/halo.txt" "$room/bin/halo" "${domain[@]}" --variant target
    echo "halo: right"
}

"run_$part"
