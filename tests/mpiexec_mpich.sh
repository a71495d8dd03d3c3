#!/usr/bin/env bash
# mpiexec_mpich.sh N PROGRAM ARGS...: runs PROGRAM on N ranks of this machine under MPICH, whatever its number of cores. MPIEXEC_MPICH names the
# launcher if it has another name.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
set -eu
ranks=$1
shift
[ -z "${RESTING_YIELD:-}" ] || export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD }$RESTING_YIELD"
exec "${MPIEXEC_MPICH:-mpiexec.mpich}" -launcher fork -n "$ranks" "$@"
