#!/bin/sh
# on_node.sh PROGRAM ARGS...: runs the program of one PE under the host name of its node (nodes.sh). The first PE of every node but the first starts
# the node's device. The library starts only one, because the launcher takes all nodes for one.
rank=${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}
export FIRST=$((rank > 0 && rank % NODE_PES == 0))
exec unshare --uts sh -c 'hostname "$0"
    # The launcher waits until nothing holds the output of its processes.
    [ "$FIRST" = 1 ] && "$DAEMON" --dir "$OFFPATH_DIR" --idle-exit 60 --log-level ${OFFPATH_DAEMON_LOG_LEVEL:-warn} --log-file "$OFFPATH_DIR/$0.log" </dev/null >"$OFFPATH_DIR/$0.output.log" 2>&1 &
    exec "$@"' "node$((rank / NODE_PES))" "$@"
