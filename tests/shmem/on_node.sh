#!/bin/sh
# on_node.sh PROGRAM ARGS...: the program of one PE, under the host name of its node (nodes.sh).
node=$((${OMPI_COMM_WORLD_RANK:-$PMIX_RANK} / NODE_PES))
exec unshare --uts sh -c 'hostname "$0" && exec "$@"' "node$node" "$@"
