#!/usr/bin/env bash
# test-all.sh: runs the kinds of checks that `make test` leaves out, one after the other, and all of them even if one
# fails. Prints the time of each at the end, and the log of each that failed. Exits with 1 if one failed.
# Run `make build` first. A part that cannot run here (exit code 77) is listed as skipped, with its reason.
# usage: scripts/test-all.sh [PART...]     PART is a name from the list below
set -uo pipefail
cd "$(dirname "$0")/.."
logs=build/Testing/parts
mkdir -p "$logs"
jobs=$(nproc)
export JOBS=${JOBS:-$jobs}
# The seed is fixed, so that a change passes or fails for its own reasons. `make fuzz` looks for new inputs.
export FUZZ_SEED=${FUZZ_SEED:-1} FUZZ_SECONDS=${FUZZ_SECONDS:-10}

suite() { (cd tests && ../.venv/bin/python -m suite "$@"); }
# sanitized NAME: the unit tests of a tree with sanitizers.
sanitized() {
    [ -f "build-$1/build.ninja" ] || cmake --preset "$1" -DCMAKE_MESSAGE_LOG_LEVEL=WARNING || return 1
    scripts/build.py "build-$1" unit-tests && suite "build-$1" --set units
}

declare -A command=(
    [rest]="scripts/build.py build all other-mpi-tests && suite build --set rest"
    [mpi-next]="scripts/test-mpi-next.sh"
    [aarch64]="tests/aarch64/run.sh build"
    [demo]="make --no-print-directory demo"
    [fuzz]="scripts/fuzz.sh"
    [asan]="sanitized asan"
    [tsan]="sanitized tsan"
    [rdma]="scripts/test-rdma.sh"
    [packages]="make --no-print-directory deb wheel"
    [site]="make --no-print-directory docs-check"
)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(demo rest rdma aarch64 fuzz asan tsan mpi-next packages site)

times=() failed=() skipped=()
for part in "${parts[@]}"; do
    [ -n "${command[$part]:-}" ] || { echo "test-all.sh: $part is none of: ${!command[*]}" >&2; exit 2; }
    begin=$SECONDS log=$logs/$part.log
    echo "== $part"
    set -m
    (eval "${command[$part]}") >"$log" 2>&1 &
    process=$!
    set +m
    trap 'kill -- -$process 2>/dev/null; exit 130' INT TERM
    while kill -0 $process 2>/dev/null; do
        # A line a minute.
        for ((i = 0; i < 120; ++i)); do sleep 0.5 && kill -0 $process 2>/dev/null || break; done
        [ "$i" -lt 120 ] || echo "   $part: $((SECONDS - begin)) s: $(tail -n 1 "$log" | cut -c 1-100)"
    done
    wait $process
    code=$?
    times+=("$(printf '%5d s  %s' $((SECONDS - begin)) "$part")")
    case $code in
        0) tail -n 1 "$log" ;;
        77) skipped+=("$part: $(tail -n 1 "$log")") ;;
        *)
            failed+=("$part")
            tail -n 200 "$log"
            echo "== $part FAILED with $code (all of its output: $log; alone: scripts/test-all.sh $part)"
            ;;
    esac
done
printf '\ntimes:\n'
printf '%s\n' "${times[@]}"
[ ${#skipped[@]} = 0 ] || { printf '\nskipped:\n' && printf '  %s\n' "${skipped[@]}"; }
# The reasons once more, where nobody overlooks them: which tests failed, or the first errors of a build.
for part in "${failed[@]}"; do
    printf '\nfailed: scripts/test-all.sh %s\n' "$part"
    { sed -n '/^failed:$/,$p' "$logs/$part.log" | grep . || grep -m 10 -E 'FAILED|[Ee]rror' "$logs/$part.log" || tail -n 10 "$logs/$part.log"; } |
        head -n 30 | cut -c 1-300 | sed 's/^/  /'
done
printf '\n%d passed, %d failed, %d skipped\n' $((${#parts[@]} - ${#failed[@]} - ${#skipped[@]})) ${#failed[@]} ${#skipped[@]}
[ ${#failed[@]} = 0 ]
