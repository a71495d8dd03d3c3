#!/usr/bin/env bash
# mpmd.sh NODES HOSTS DEVICES HOW PROGRAM [ARGS...]: one MPMD job on this machine, with HOSTS host ranks and DEVICES device ranks per node, each of
# which runs PROGRAM. If DEVICE_PROGRAM is set, devices run that instead.
#   HOW  labels    one program per node and kind, labelled by environment variables
#        programs  two programs, the hosts' and the devices', without variables
# As in tests/mpirun.sh: memory that Open MPI keeps cannot be distinguished from leaks.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
set -eu
nodes=$1 hosts=$2 devices=$3 how=$4
shift 4
device_program=${DEVICE_PROGRAM:-$1}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=lo
[ -z "${RESTING_YIELD:-}" ] || export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD }$RESTING_YIELD"
line=()
add() {
    [ ${#line[@]} -eq 0 ] || line+=(:)
    line+=("$@")
}
case $how in
    labels)
        for ((node = 0; node < nodes; ++node)); do
            add -n "$hosts" -x OFFPATH_RANK_KIND=host -x OFFPATH_NODE_INDEX=$node "$@"
            add -n "$devices" -x OFFPATH_RANK_KIND=device -x OFFPATH_NODE_INDEX=$node "$device_program" "${@:2}"
        done ;;
    programs)
        add -n $((nodes * hosts)) "$@"
        add -n $((nodes * devices)) "$device_program" "${@:2}" ;;
    *) echo "mpmd.sh: HOW is labels or programs, not $how" >&2; exit 2 ;;
esac
exec mpirun "${line[@]}"
