#!/usr/bin/env bash
# other-programs.sh DIR: builds programs of others below DIR, with Open MPI, and writes DIR/programs.json, a list for
# `offpath bench programs --programs DIR/programs.json`. They have patterns that ours have not: pipelined messages with
# MPI_Waitany (heFFTe), 26 neighbours and wavefronts (Ember), adaptive meshes (miniAMR), multigrid (AMG, HPCG).
# Each is taken from GitHub at a fixed commit; nothing of it comes into this repository. A program that is there already
# is not built again. Needs a network, git, cmake, FFTW and Open MPI.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | head -n -1 >&2; exit 2; }
mkdir -p "$1" && cd "$1"
here=$PWD jobs=${JOBS:-$(nproc)}

# source OWNER/NAME COMMIT: the sources in the folder NAME.
source_of() {
    local name=${1#*/}
    [ -d "$name" ] || git clone -q "https://github.com/$1" "$name"
    git -C "$name" checkout -q "$2" 2>/dev/null || { git -C "$name" fetch -q origin "$2" && git -C "$name" checkout -q "$2"; }
}
# built FILE COMMAND...: runs the command unless the file exists.
built() {
    local file=$1
    shift
    [ -x "$here/$file" ] || (set -e && "$@") >"$here/build.log" 2>&1 || { tail -n 20 "$here/build.log" >&2; echo "$file cannot be built" >&2; exit 1; }
    echo "$here/$file"
}

heffte() {
    cmake -S heffte -B heffte/build -DCMAKE_BUILD_TYPE=Release -DHeffte_ENABLE_FFTW=ON -DHeffte_ENABLE_TESTING=ON \
        -DMPI_CXX_COMPILER="$(command -v mpicxx.openmpi)"
    make -C heffte/build -j "$jobs" speed3d_c2c
}
ember() { make -C "ember/mpi/$1" CC=mpicc.openmpi CFLAGS="-O2 -std=gnu99"; }
miniamr() { make -C miniAMR/ref -j "$jobs" CC=mpicc.openmpi LD=mpicc.openmpi CFLAGS="-O2 -w" LDFLAGS= LDLIBS=-lm; }
amg() { make -C AMG -j "$jobs" CC=mpicc.openmpi INCLUDE_CFLAGS="-O2 -w -DHYPRE_TIMING" INCLUDE_LFLAGS=-lm; }
hpcg() {
    mkdir -p hpcg/build
    cd hpcg/build
    sed -e 's/^CXX .*/CXX = mpicxx.openmpi/' -e 's/^CXXFLAGS .*/CXXFLAGS = $(HPCG_DEFS) -O3/' -e 's/^HPCG_OPTS .*/HPCG_OPTS = -DHPCG_NO_OPENMP/' \
        ../setup/Make.Linux_MPI >../setup/Make.here
    ../configure here
    make -j "$jobs"
}

source_of icl-utk-edu/heffte 4d8d4597b479d1e4709a2b1b4cd7d8922600045f
source_of sstsimulator/ember f47fcd9acba0a4b3787e3bc4a0e7fb96fb922141
source_of Mantevo/miniAMR 635fef2f83558f09805725428daf366c32428d0c
source_of LLNL/AMG 3ada8a128e311543e84d9d66344ece77924127a8
source_of hpcg-benchmark/hpcg 114602d458d1034faa52b71e4c15aba9b3a17698

fft=$(built heffte/build/benchmarks/speed3d_c2c heffte)
halo=$(built ember/mpi/halo3d-26/halo3d-26 ember halo3d-26)
sweep=$(built ember/mpi/sweep3d/sweep3d ember sweep3d)
mesh=$(built miniAMR/ref/miniAMR.x miniamr)
grids=$(built AMG/test/amg amg)
gradients=$(built hpcg/build/bin/xhpcg hpcg)

# The commands are for two ranks.
cat >programs.json <<END
{
  "heffte-pipelined": {"about": "3-D FFT, MPI_Irecv, packing, MPI_Isend, MPI_Waitany", "command": "$fft fftw double 96 96 96 -p2p_pl -n10"},
  "heffte-plain": {"about": "the same, all sends after all packing", "command": "$fft fftw double 96 96 96 -p2p -n10"},
  "halo3d-26": {"about": "26 neighbours, MPI_Isend and MPI_Irecv", "command": "$halo -pex 2 -pey 1 -pez 1 -nx 96 -ny 96 -nz 96 -vars 4 -iterations 40"},
  "sweep3d": {"about": "wavefronts from eight corners", "command": "$sweep -pex 2 -pey 1 -nx 64 -ny 64 -nz 512 -kba 16 -vars 4 -iterations 4"},
  "miniamr": {"about": "adaptive mesh, MPI_Waitany", "command": "$mesh --npx 2 --npy 1 --npz 1 --nx 8 --ny 8 --nz 8 --num_vars 20 --num_tsteps 10 --stages_per_ts 5"},
  "amg": {"about": "algebraic multigrid", "command": "$grids -P 2 1 1 -n 24 24 24 -problem 1"},
  "hpcg": {"about": "conjugate gradients with multigrid", "command": "$gradients --nx=32 --ny=32 --nz=32 --rt=1"}
}
END
echo "$here/programs.json"
