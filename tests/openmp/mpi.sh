#!/usr/bin/env bash
# mpi.sh BUILD local|remote|refusing openmpi|mpich RANKS EXPECTED PROGRAM [ARGS...]: a program of RANKS ranks whose target regions call MPI, on one
# device, local or as if on a system of its own. Its output must be that of the file EXPECTED. With DIES=TEXT it must fail, and its
# errors must have TEXT. With SAYS=TEXT it must write that to standard error. VERBOSE as OFFPATH_VERBOSE (0). With ONLY=PATTERN only what matches it
# counts as output. ATTACH `refusing`: the device runs no regions; `other_user`: it is remote, and runs them as another user than its own.
set -euo pipefail
build=$1 attach=$2 mpi=$3 ranks=$4 expected=$5
shift 5
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/support/daemons.sh
. "$root/tests/support/daemons.sh"
plugins=$build/lib/openmp daemon_of=$build
if [ "$attach" = aarch64 ]; then
    daemon_of=$OFFPATH_BUILD_AARCH64
    daemon_prefix=("$daemon_of/bin/run")
    offpathd=$daemon_of/bin/offpathd
fi
if [ "$attach" = other_user ]; then
    # That user has to reach the target host's program.
    if [ "$(id -u)" != 0 ] || ! getent passwd nobody >/dev/null || ! command -v setpriv >/dev/null ||
        ! setpriv --reuid nobody --clear-groups test -x "$build/bin/offpath-target-host" 2>/dev/null; then
        echo "mpi.sh: skipped: this needs root and a build that user nobody can reach"
        exit 77
    fi
    (umask 077 && head -c 32 /dev/urandom >"$dir/key")
    start_daemon "$dir/s" "$dir/daemon.log" --name dpu0 --listen 127.0.0.1:0 --key-file "$dir/key" --allow-images --kernel-user nobody
    use_device "$dir/s"
elif [ "$attach" = remote ] || [ "$attach" = aarch64 ]; then
    start_target_device remote
else
    options=()
    if [ "$attach" = refusing ]; then options=(--no-kernels); fi
    start_target_device local "${options[@]}"
fi
preload=$build/lib/liboffpath-mpi.so launch=$root/tests/mpirun.sh
if [ "$mpi" = mpich ]; then preload=$build/lib/liboffpath-mpi-mpich.so launch=$root/tests/mpiexec_mpich.sh; fi
export LD_LIBRARY_PATH=$plugins${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_TARGET_OFFLOAD=MANDATORY OFFPATH_VERBOSE=${VERBOSE:-0}
code=0
timeout -k 5 60 "$launch" "$ranks" env LD_PRELOAD="$preload" "$@" \
    >"$dir/output.txt" 2>"$dir/errors.log" </dev/null || code=$?
if [ -n "${DIES:-}" ]; then
    [ "$code" -ne 0 ] && [ "$code" -ne 124 ] || fail "$1 ended with $code"
    grep -q "$DIES" "$dir/errors.log" || fail "nobody said '$DIES'"
    kill -0 "$daemon" || fail "the daemon is gone"
    exit 0
fi
[ "$code" -eq 0 ] || fail "$1 on $ranks ranks ended with $code"
if [ -n "${ONLY:-}" ]; then
    grep -oE "$ONLY" "$dir/output.txt" >"$dir/only.txt" || true
    mv "$dir/only.txt" "$dir/output.txt"
fi
diff "$expected" "$dir/output.txt" >&2 || fail "another output than expected"
if [ -n "${SAYS:-}" ]; then
    grep -q "$SAYS" "$dir/errors.log" || fail "nobody said '$SAYS'"
    rm "$dir/errors.log"
else
    [ ! -s "$dir/errors.log" ] || fail "it wrote to standard error"
fi
[ "$attach" = refusing ] || ! grep -q ' error: ' "$dir/daemon.log" || fail "the daemon met an error"
end_daemon
