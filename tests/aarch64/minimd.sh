#!/usr/bin/env bash
# minimd.sh HOST_MINIMD RUN DEVICE_MINIMD: miniMD prints the same temperatures, energies and pressures on x86-64, on aarch64 (started by RUN), and in
# one job with a rank of each.
set -euo pipefail
host=$1
run=$2
device=$3
input=$(mktemp)
trap 'rm -f "$input"' EXIT
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_pml=ob1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none

# Step, temperature, energy and pressure, without the time.
rows() {
    "$@" | awk '$1 ~ /^[0-9]+$/ && NF == 5 { print $1, $2, $3, $4 }'
}
failed=0
compare() {
    local what=$1 x86 arm both
    shift
    x86=$(rows "$host" "$@")
    arm=$(rows "$run" "$device" "$@")
    both=$(rows mpirun -n 1 "$host" "$@" : -n 1 "$run" "$device" "$@")
    if [ "$(wc -l <<<"$x86")" = 3 ] && [ "$x86" = "$arm" ] && [ "$x86" = "$both" ]; then
        echo "$what: the same"
    else
        printf '%s: differ\nx86-64\n%s\naarch64\n%s\nboth\n%s\n' "$what" "$x86" "$arm" "$both" >&2
        failed=1
    fi
}

printf '%s\n' - - lj none lj '1.0 1.0' '5 5 5' 10 0.005 1.44 0.8442 5 '2.5 0.3' 5 >"$input"
compare "Lennard-Jones" -i "$input"
if [ -f /usr/share/lammps/potentials/Cu_u6.eam ]; then
    printf '%s\n' - - metal none eam '1.0 1.0' '5 5 5' 10 0.001 600 0.07041125 5 '4.95 1.0' 5 >"$input"
    compare "copper" -i "$input" --eam-file /usr/share/lammps/potentials/Cu_u6.eam
else
    echo "copper: skipped: no Cu_u6.eam (lammps-data)"
fi
exit $failed
