#!/usr/bin/env bash
# meet.sh NEW OLD: libraries, daemons, ranks, programs and files of two builds meet. Each argument is a directory
# with bin/ and lib/. Builds whose daemons have the same protocol version must work together, with offload.
# Others must name both versions, and a program of MPI must be right without offload. OLD needs shmem_collectives_test
# and shmem_atomics_test; all other programs are those of NEW.
set -u
new=$1 old=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$new
. "$root/tests/support/daemons.sh"
number=0 passed=0

version_of() {
    "$1/bin/offpathd" --info | sed -n 's/.*"protocol_version": *\([0-9]*\).*/\1/p'
}
versions=("$(version_of "$old")" "$(version_of "$new")")
[ -n "${versions[0]}" ] && [ -n "${versions[1]}" ] || fail "a daemon does not say its protocol version"
same=0
[ "${versions[0]}" = "${versions[1]}" ] && same=1
echo "protocol versions: ${versions[0]} and ${versions[1]}"

# Also of a meeting that goes wrong: successors of daemons are not among those that were started here.
at_end() {
    local file
    for file in "$dir"/*/*/*.pid; do
        [ -s "$file" ] && kill -TERM "$(cat "$file")" 2>/dev/null
    done
}

# Ends the daemons of a meeting, and begins the next one, in a directory of its own.
meeting() {
    local process
    for process in "${daemons[@]}"; do kill -TERM "$process" 2>/dev/null && wait "$process" 2>/dev/null; done
    daemons=() number=$((number + 1)) name=$1
    here=$dir/$number
    mkdir -p "$here"
    rm -f "$dir"/*.log
}
daemon_of() {
    offpathd=$1/bin/offpathd start_daemon "$here/$2" "$here/$2.log" --name "node$2" --idle-exit 120
}
right() {
    passed=$((passed + 1))
    echo "right: $name${1:+ ($1)}"
}
wrong() {
    cp "$here"/*.log "$dir" 2>/dev/null
    fail "$name: $*"
}

# job LIBRARY0 LIBRARY1 PROGRAM ARGS...: two ranks, with the front ends of the two builds, at the daemons of
# $daemon0 and $daemon1. $log has what it wrote.
job() {
    local first=$1 second=$2
    shift 2
    log=$here/job.log
    # shellcheck disable=SC2016
    OFFPATH_MIN_BYTES=4096 OFFPATH_OPS=all OFFPATH_P2P=all OFFPATH_P2P_WAITED=device OFFPATH_RMA=all OFFPATH_VERBOSE=1 \
        timeout -k 5 120 "$root/tests/mpirun.sh" 2 sh -c 'case $OMPI_COMM_WORLD_RANK in
        0) export OFFPATH_DIR=$1 LD_PRELOAD=$3/lib/liboffpath-mpi.so ;;
        *) export OFFPATH_DIR=$2 LD_PRELOAD=$4/lib/liboffpath-mpi.so ;; esac; shift 4; exec "$@"' \
        sh "$daemon0" "$daemon1" "$first" "$second" "$@" >"$log" 2>&1
}
offloaded() {
    grep -Eq '^offpath: (offloaded|the device carried|one-sided:) [1-9]' "$log"
}
# Whether the daemon of $daemon0 has run schedules. The command of either version reads what it shows.
exchanges() {
    "$new/bin/offpath" top --prometheus | grep -q "^offpath_proxy_schedules_run_total{.*process=\"$(cat "$daemon0"/*.pid)\".* [1-9][0-9]"
}
# Somebody names both versions: those of libraries and daemons, or those of a file's format.
names_both() {
    grep -Eq "version ${versions[0]}\b.*version ${versions[1]}\b|version ${versions[1]}\b.*version ${versions[0]}\b" "$@"
}
# judge RESULT PROGRAM: what the job must have done.
judge() {
    local result=$1 program=$2
    [ "$result" -eq 0 ] || wrong "$program ended with $result"
    if [ "$same" -eq 1 ]; then
        offloaded || wrong "$program was not offloaded"
        right "$program, with offload"
    else
        ! offloaded || wrong "$program was offloaded although the versions differ"
        names_both "$log" || wrong "$program: nobody names versions ${versions[0]} and ${versions[1]}"
        right "$program, without offload; both versions are named"
    fi
}
judge_all() {
    local program
    for program in "mpi_collectives_test" "mpi_reductions_test" "mpi_p2p_random_test 7 60" "mpi_rma_random_test 7 60 host"; do
        # shellcheck disable=SC2086
        job "$1" "$2" "$new"/bin/$program
        judge $? "${program%% *}"
    done
}

meeting "an older library at a newer daemon"
daemon_of "$new" 0
daemon0=$here/0 daemon1=$here/0
judge_all "$old" "$old"

meeting "a newer library at an older daemon"
daemon_of "$old" 0
daemon0=$here/0 daemon1=$here/0
judge_all "$new" "$new"

meeting "ranks of two versions at a newer daemon"
daemon_of "$new" 0
daemon0=$here/0 daemon1=$here/0
judge_all "$old" "$new"

meeting "two nodes of different versions"
daemon_of "$old" 0
daemon_of "$new" 1
daemon0=$here/0 daemon1=$here/1
judge_all "$old" "$new"

# OpenSHMEM's programs name the library, so a newer one takes the older one's place.
meeting "a program of OpenSHMEM that was built with the older library"
for program in shmem_collectives_test shmem_atomics_test; do
    OFFPATH_DIR=$here OFFPATH_IDLE_EXIT=1 LD_LIBRARY_PATH=$new/lib OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none \
        timeout -k 5 120 "$new/bin/oshrun" -n 2 "$old/bin/$program" >"$here/job.log" 2>&1 || wrong "$program ended with $?"
    right "$program with the newer library and daemon"
done

# The job begins at the older daemon, and goes on there while the newer one takes the place.
meeting "a newer daemon replaces an older one under a running job"
daemon_of "$old" 0
daemon0=$here/0 daemon1=$here/0
job "$old" "$old" "$new/bin/fft3d" --n 64 --iterations 300 --json "$here/with.json" &
running=$!
# The restart comes once the job exchanges data.
begun=0
for _ in $(seq 300); do
    exchanges && begun=1 && break
    sleep 0.1
done
[ "$begun" -eq 1 ] || wrong "the job does not begin to exchange data"
"$new/bin/offpath" control restart --dir "$here/0" --daemon "$new/bin/offpathd" >"$here/restart.log" 2>&1 || wrong "the restart failed: $(cat "$here/restart.log")"
kill -0 "$running" 2>/dev/null || wrong "the job ended before the restart did"
wait "$running" || wrong "the running job ended with $?"
log=$here/job.log
offloaded || wrong "the running job was not offloaded"
right "the running job"
library=$old
[ "$same" -eq 1 ] || library=$new
job "$library" "$library" "$new/bin/mpi_collectives_test" || wrong "the next job ended with $?"
offloaded || wrong "the next job was not offloaded"
right "the next job at the newer daemon"
kill -TERM "$(cat "$here"/0/*.pid)"

# A reader of another format names both versions and what to do; the library goes on without a table.
meeting "a tuning table of the older command"
"$old/bin/offpath" tune --ops ialltoall --sizes 64K --runs 1 --seconds 0.05 -o "$here/table.json" -- "$root/tests/mpirun.sh" 2 \
    >"$here/tune.log" 2>&1 || wrong "offpath tune ended with $?: $(cat "$here/tune.log")"
daemon_of "$new" 0
daemon0=$here/0 daemon1=$here/0
OFFPATH_TUNING=$here/table.json job "$new" "$new" "$new/bin/mpi_collectives_test" || wrong "the job ended with $?"
offloaded || wrong "the job was not offloaded"
if grep -q 'table' "$log"; then
    grep -Eq 'version [0-9]+.*version [0-9]+|format [0-9]+.*[0-9]+' "$log" || wrong "what is wrong with the table is not said by versions: $(grep table "$log")"
fi
right "the newer library"

meeting "a profile of the older command"
"$old/bin/offpath" advise --profile "$here/profile" -- "$root/tests/mpirun.sh" 2 "$new/bin/fft3d" --n 32 --iterations 3 \
    >"$here/profile.log" 2>&1 || wrong "offpath advise ended with $?: $(cat "$here/profile.log")"
if ! "$new/bin/offpath" advise --profile "$here/profile" --platform thor-bf3 >"$here/advise.log" 2>&1; then
    grep -Eq 'version' "$here/advise.log" || wrong "the newer command does not name the profile's version: $(cat "$here/advise.log")"
fi
right "the newer command"

echo "$passed meetings went right"
