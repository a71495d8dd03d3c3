#!/usr/bin/env bash
# no_copies.sh BUILD: example-no-copies under mpirun, on two nodes of one system (UTS namespaces) whose devices have a stand-in for the card
# (mapped_memory.cpp). It passes, so no device has copied anything.
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
offpathd=$build/tests/rdma/bin/offpathd-mapping
source "$root/tests/support/daemons.sh"

# The library opens its plug-in beside itself.
mkdir "$dir/lib"
cp -L "$build"/lib/liboffpath.so* "$dir/lib"
cp "$build/tests/rdma/lib/liboffpath-link.so" "$dir/lib"
listen_options
for node in 0 1; do
    daemon_prefix=(unshare --uts sh -c 'hostname "node-$0" && exec "$@"' "$node")
    start_daemon "$dir/$node" "$dir/daemon$node.log" "${listen[@]}"
done
export LD_LIBRARY_PATH=$dir/lib OFFPATH_KEY_FILE=$dir/key dir
"$root/tests/mpirun.sh" 2 bash -c 'export OFFPATH_DEVICES=127.0.0.1:$(cat "$dir/$OMPI_COMM_WORLD_RANK"/*.port)
    exec unshare --uts sh -c "hostname node-$OMPI_COMM_WORLD_RANK && exec \"\$0\"" "$0"' "$build/bin/example-no-copies" >"$dir/said.log" 2>&1 || fail "a line failed"
[ "$(grep -c '^pass: ' "$dir/said.log")" -eq 20 ] || fail "too few lines"
kill -TERM "${daemons[@]}"
for process in "${daemons[@]}"; do wait "$process" || fail "a daemon ended with $?"; done
daemons=()
