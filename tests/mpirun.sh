#!/usr/bin/env bash
# mpirun.sh N PROGRAM ARGS...: runs PROGRAM on N ranks of this machine, whatever its number of cores. MPIRUN names Open MPI's launcher if it is not
# mpirun.
# Open MPI unloads its components at the end. What they still hold can then no longer be named for a suppression, so only tests without MPI look for
# leaks.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
set -eu
ranks=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_pml=ob1 OMPI_MCA_btl="${OMPI_MCA_btl:-self,vader,tcp}" OMPI_MCA_btl_tcp_if_include=lo
# Open MPI 5's launcher is PRRTE.
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
[ -z "${RESTING_YIELD:-}" ] || export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD }$RESTING_YIELD"
# A daemon that ranks start serves this test alone. In the usual folder, another test's ranks would keep it.
[ -z "${TMPDIR:-}" ] || export OFFPATH_DIR="${OFFPATH_DIR:-$TMPDIR/offpath}"
exec "${MPIRUN:-mpirun}" -n "$ranks" "$@"
