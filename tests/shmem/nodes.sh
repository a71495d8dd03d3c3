#!/usr/bin/env bash
# nodes.sh BUILD PES NODE_PES PROGRAM ARGS...: as run.sh, but every NODE_PES PEs have their own host name, and therefore their own device and no
# memory in common with the others. It needs the right to set host names; without it, the test is skipped.
set -u
build=$1 pes=$2 node_pes=$3
shift 3
unshare --uts true 2>/dev/null || { echo "nodes.sh: skipped: no right to give processes a host name of their own"; exit 77; }
export NODE_PES=$node_pes DAEMON=$build/bin/offpathd
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/run.sh" "$build" "$pes" "$here/on_node.sh" "$@"
