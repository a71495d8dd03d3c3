#!/usr/bin/env bash
# openmp.sh BUILD AARCH64-BUILD: the examples with target regions, compiled for devices of both architectures, on an emulated aarch64 device.
# Those whose regions call MPI run as 2 ranks of Open MPI.
set -euo pipefail
build=$(realpath "$1") arm=$2
here=$(realpath "$(dirname "$0")/..")
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

for source in "$here"/../examples/openmp/*.c*; do
    case $source in */mpi_* | */library.c | */shared_library.c) continue ;; *.cpp | *.c) ;; *) continue ;; esac
    make "$source"
    "$here/openmp/run.sh" "$build" aarch64 "$program" "${source%.*}.txt"
    echo "$(basename "$program"): right"
done

command -v mpicc.openmpi >/dev/null || {
    echo "regions that call MPI: skipped, because Open MPI's compiler wrapper is missing"
    exit 0
}
read -ra flags <<<"$(mpicc.openmpi --showme:compile) $(mpicc.openmpi --showme:link)"
for source in "$here"/../examples/openmp/mpi_*.c "$here"/openmp/mpi_types.c "$here"/openmp/mpi_regions_at_once.c "$here"/openmp/mpi_operations.c; do
    expected=${source%.*}.txt
    [ -e "$expected" ] || expected=$here/openmp/no_errors.txt
    make "$source" "${flags[@]}"
    "$here/openmp/mpi.sh" "$build" aarch64 openmpi 2 "$expected" "$program"
    echo "$(basename "$program"): right"
done
