#!/usr/bin/env bash
# run.sh BUILD cma|staged|two-proxies|remote|rings RANKS PROGRAM: runs PROGRAM under mpirun with a daemon of its own, and checks that the daemon ends
# normally and leaves nothing behind. remote: attached over TCP, without the socket. rings: the same, with completions that the device writes into the
# ranks' memory, as it would by RDMA.
set -u
build=$1 variant=$2 ranks=$3 program=$4
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"

options=() back_end=$variant
if [ "$variant" = two-proxies ]; then
    options=(--proxies 2) back_end=auto
fi
if [ "$variant" = rings ]; then
    export OFFPATH_LINK=ucx UCX_TLS=sysv,tcp
fi
if [ "$variant" = remote ] || [ "$variant" = rings ]; then
    listen_options
    options=("${listen[@]}") back_end=auto
fi
start_daemon "$dir" "$dir/daemon.log" "${options[@]}"
if [ "$variant" = remote ] || [ "$variant" = rings ]; then
    use_device "$dir"
fi
OFFPATH_DIR=$dir OFFPATH_BACK_END=$back_end timeout -k 5 100 "$root/tests/mpirun.sh" "$ranks" "$program"
result=$?
if [ "$variant" = rings ] && ! grep -q "completions into the hosts' memory" "$dir/daemon.log"; then
    fail "completions were not written into the ranks' memory"
fi
[ $result -eq 0 ] || fail "$(basename "$program") ended with $result"
end_daemon
