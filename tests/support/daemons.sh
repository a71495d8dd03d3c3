# daemons.sh: starts and ends the daemons of a shell test. Source it after `build=BUILD`, or after
# `offpathd=PROGRAM` if the daemon is not that of a build. It makes the directory $dir and removes it at the end.
#   start_daemon DIRECTORY LOG [OPTIONS...]   starts offpathd and returns when it is ready; its process is $daemon. The array $daemon_prefix
#                                             is a command that starts it elsewhere, such as nsenter
#   listen_options                            makes the key, and sets $listen to the options of a daemon that accepts clients over TCP
#   use_device DIRECTORY                      makes programs attach over TCP to the daemon of that directory
#   start_target_device local|remote [OPTIONS...]  starts the daemon of $dir/s for programs with target regions: on their system, or as if on
#                                             another one
#   end_daemon                                ends $daemon by SIGTERM; fails if it does not end normally or leaves files in $dir
#   preload_of PROGRAM LIBRARY                prints LIBRARY for LD_PRELOAD, behind the run time of a sanitizer, unless ANY_ORDER is set, and
#                                             before RESTING_YIELD (resting_yield.cpp)
#   fail WORDS                                prints what is wrong, shows $dir/*.log, and ends the test
# A test may define `at_end`, which is called before everything else at its end.
dir=$(mktemp -d "${TMPDIR:-/tmp}/offpath-test.XXXXXX")
# All launchers of Open MPI 4.1 share a directory in /tmp. One that ends removes it if it is empty, while another one
# may be creating it, which then fails.
export OMPI_MCA_orte_tmpdir_base=$dir
daemon= daemons=() daemon_prefix=() listen=()

fail() {
    echo "$(basename "$0"): $*" >&2
    for log in "$dir"/*.log; do
        [ -s "$log" ] && sed "s|^|  $(basename "$log" .log): |" "$log" >&2
    done
    exit 1
}

daemons_cleanup() {
    local process
    if declare -F at_end >/dev/null; then at_end; fi
    for process in "${daemons[@]}"; do kill -KILL "$process" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap daemons_cleanup EXIT
trap 'exit 130' INT TERM

start_daemon() {
    local directory=$1 log=$2 ready fd pipe
    shift 2
    mkdir -p "$directory"
    pipe=$(mktemp -u "$dir/ready.XXXXXX")
    mkfifo "$pipe"
    exec {fd}<>"$pipe"
    rm -f "$pipe"
    # UCX patches the functions that map memory when it is loaded, and waits 50 ms for each of the eight. A daemon needs
    # that only for memory registered with a network card.
    UCX_MEM_MMAP_HOOK_MODE=${UCX_MEM_MMAP_HOOK_MODE:-none} "${daemon_prefix[@]}" "${offpathd:-$build/bin/offpathd}" --dir "$directory" "$@" --ready-fd 3 3<&"$fd" {fd}<&- >>"$log" 2>&1 &
    daemon=$!
    daemons+=("$daemon")
    read -r -n 1 -t 20 ready <&"$fd" || fail "the daemon of $directory was not ready within 20 s"
    [ "$ready" = 1 ] || fail "the daemon said '$ready' instead of 1"
    exec {fd}<&-
}

listen_options() {
    [ -s "$dir/key" ] || (umask 077 && head -c 32 /dev/urandom >"$dir/key")
    listen=(--listen 127.0.0.1:0 --key-file "$dir/key")
}

use_device() {
    OFFPATH_DEVICES=127.0.0.1:$(cat "$1"/*.port)
    export OFFPATH_DEVICES OFFPATH_KEY_FILE=$dir/key
}

# A key that comes by a pipe lets regions run as the daemon's own user.
start_target_device() {
    local where=$1
    shift
    if [ "$where" = local ]; then
        start_daemon "$dir/s" "$dir/daemon.log" --name dpu0 "$@"
        export OFFPATH_DIR=$dir/s
        return
    fi
    (umask 077 && head -c 32 /dev/urandom >"$dir/key")
    start_daemon "$dir/s" "$dir/daemon.log" --name dpu0 --listen 127.0.0.1:0 --key-fd 9 --allow-images "$@" 9< <(cat "$dir/key")
    use_device "$dir/s"
}

end_daemon() {
    local process=$daemon ended=0 left others=() other
    kill -TERM "$process"
    for _ in $(seq 100); do
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    kill -0 "$process" 2>/dev/null && fail "the daemon does not end within 10 s of SIGTERM"
    wait "$process" || ended=$?
    for other in "${daemons[@]}"; do [ "$other" = "$process" ] || others+=("$other"); done
    daemons=("${others[@]}")
    daemon=
    [ "$ended" -eq 0 ] || fail "the daemon ended with $ended"
    left=$(find "$dir" \( -name '*.sock' -o -name '*.pid' -o -name '*.port' \) -print)
    [ -z "$left" ] || fail "left behind: $left"
}

preload_of() {
    local preload=$2 runtime
    [ -n "${ANY_ORDER:-}" ] || for runtime in $(ldd "$1" | awk '/lib(a|t)san/ { print $3 }'); do preload="$runtime $preload"; done
    echo "$preload${RESTING_YIELD:+ $RESTING_YIELD}"
}
