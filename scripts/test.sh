#!/usr/bin/env bash
# test.sh BUILD: runs all tests of a build tree except the long ones. On the release tree (`build`) it also
# runs lint.sh, the tests of the Python command, those of aarch64, and the decoders' fuzzers for a minute
# in all. Exits with non-zero if anything fails. At the end it lists the tests that needed a second try, what
# was skipped and why, the slowest tests, and the time of each part.
#   test.sh BUILD long       only the long tests, which run with more ranks
#   test.sh BUILD -R NAME    tests whose names match the regular expression NAME, including long ones; a case of
#                            a GoogleTest program as Suite.Case
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
what=${2:-all}
failed=0

# Open MPI refuses to run as root unless these are set. The tests are often run in containers.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS="detect_leaks=1:${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$PWD/tests/sanitizers/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
export TSAN_OPTIONS="suppressions=$PWD/tests/sanitizers/tsan.supp:${TSAN_OPTIONS:-}"
# UCX patches madvise(), which a thread still calls after the sanitizer has finished with it. offpath does not
# need that hook.
case $build in *tsan*) export UCX_MEM_MMAP_HOOK_MODE=none ;; esac

# Ranks of tests rest while they wait (tests/support/resting_yield.cpp).
export RESTING_YIELD=
if [ "$what" != long ] && [ -e "$build/tests/libresting-yield.so" ]; then
    case $build in *asan* | *tsan*) ;; *) RESTING_YIELD=$(realpath "$build/tests/libresting-yield.so") ;; esac
fi

if [ "$what" = -R ]; then
    name=${3:?usage: test.sh BUILD -R NAME}
    if [ "$(ctest --test-dir "$build" -N -R "$name" 2>/dev/null | sed -n 's/^Total Tests: //p')" -gt 0 ]; then
        exec ctest --test-dir "$build" --output-on-failure -R "$name"
    fi
    # Looks for a case of a program that is a single entry of ctest. Unit programs list their cases.
    for program in $(ctest --test-dir "$build" -N -L unit --show-only=json-v1 |
        python3 -c 'import json, sys; print(*sorted({t["command"][0] for t in json.load(sys.stdin)["tests"] if "command" in t and len(t["command"]) == 1}))'); do
        if "$program" --gtest_list_tests --gtest_filter="*$name*" 2>/dev/null | grep -q '^  '; then
            echo "== $program"
            "$program" --gtest_brief=1 --gtest_filter="*$name*" || failed=1
            found=1
        fi
    done
    [ -n "${found:-}" ] || { echo "test.sh: no test of $build has a name that matches $name" >&2; exit 1; }
    exit $failed
fi

said=$(mktemp)
builds= emulated=
# Also when the user interrupts it. Jobs in the background have process groups of their own (beside).
at_end() {
    local group
    for group in $builds $emulated; do kill -- "-$group" 2>/dev/null; done
    rm -f "$said" "$said.aarch64" "$said.builds"
}
trap at_end EXIT
beside() { # OUTPUT COMMAND...: runs COMMAND in the background; its process is $!
    local output=$1
    shift
    set -m
    "$@" >"$output" 2>&1 &
    set +m
}
times=() since=$SECONDS
part_ends() { # NAME: for the table of times
    times+=("$1 $((SECONDS - since)) s")
    since=$SECONDS
}
# command_test FILE: runs one file of tests of the command. On CI, tests that failed get a second try, as
# compiled tests do.
command_test() {
    local log options
    log=$LOGS/$(basename "$1").log
    options=(-q -rsf --durations=5 -o "cache_dir=$log.cache")
    if ! .venv/bin/python -m pytest "${options[@]}" "$1" >"$log" 2>&1; then
        if [ "${CI:-}" = true ] && .venv/bin/python -m pytest "${options[@]}" --last-failed "$1" >"$log.again" 2>&1; then
            sed -n 's/^FAILED \([^ ]*\).*/again: \1/p' "$log" >>"$log.again"
        else
            touch "$LOGS/failed"
        fi
        [ ! -e "$log.again" ] || cat "$log.again" >>"$log"
    fi
    echo "$1: $(grep -E '^[0-9]+ (passed|failed|skipped)' "$log" | tail -n 1)"
}
export -f command_test
# Runs the tests of the command, as many files at the same time as there are cores, the largest first. Each
# works in labs of its own. PROCESS is a process that computes beside them.
command_tests() { # PROCESS
    local logs
    logs=$(mktemp -d)
    # shellcheck disable=SC2012,SC2016  # names without spaces
    ls -S tests/python/test_*.py | grep -v /test_turns.py | LOGS=$logs xargs -P "$(nproc)" -n 1 bash -c 'command_test "$0"'
    # This test counts how often a core is taken away, so it runs alone.
    while [ -n "$1" ] && kill -0 "$1" 2>/dev/null; do sleep 0.2; done
    LOGS=$logs command_test tests/python/test_turns.py
    if [ -e "$logs/failed" ]; then cat "$logs"/*.log; else cat "$logs"/*.log | grep -E '^SKIPPED|^again: |^FAILED|^E  |^[0-9.]+s (call|setup)'; fi
    [ ! -e "$logs/failed" ]
    local result=$?
    rm -rf "$logs"
    return $result
}
# Builds what needs a build of its own, beside the compiled tests, which leave a part of the cores idle. Ends with
# the exit code of the build for aarch64, where 77 means skipped (the script prints the reason), or with 1 if
# another build fails.
other_builds() {
    local code=0
    renice -n 19 -p "$BASHPID" >/dev/null
    tests/aarch64/run.sh "$build" --build-only || code=$?
    # What `make demo` builds from a clean clone. That build compiles sources together, which must remain possible.
    { [ -f build-demo/build.ninja ] || cmake --preset demo -DCMAKE_MESSAGE_LOG_LEVEL=WARNING >/dev/null; } &&
        cmake --build build-demo -j "$(nproc)" --target demo -- --quiet || code=1
    scripts/fuzz.sh --build-only || code=1
    return $code
}
[ -z "${BUILD_SECONDS:-}" ] || times+=("build $BUILD_SECONDS s")

if [ "$build" = build ] && [ "$what" = all ]; then
    echo "== lint"
    scripts/lint.sh || failed=1
    part_ends lint
fi

echo "== compiled tests ($build)"
# Only CI, whose machines are shared, gets a second try. ctest still prints the first failure, and the report
# at the end lists the tests that needed a second try.
options=(--output-on-failure)
[ "${CI:-}" = true ] && options+=(--repeat until-pass:2)
if [ "$what" = long ]; then options+=(-L '^long$'); else options+=(-LE '^long$'); fi
# Tests mostly wait: for a start, for a limit, or for each other. So several run on each core. A job of
# several ranks counts twice. Tests with sanitizers compute more.
at_once=$((4 * $(nproc)))
case $build in *asan* | *tsan*) at_once=$(nproc) ;; esac
if [ "$build" = build ] && [ "$what" = all ]; then
    beside "$said.builds" other_builds
    builds=$!
fi
ctest --test-dir "$build" -j "${TESTS_AT_ONCE:-$at_once}" "${options[@]}" 2>&1 | tee -a "$said" || failed=1
part_ends "compiled tests"

if [ -n "$builds" ]; then
    # The tests of the command need the build for aarch64.
    echo "== the builds for aarch64, the demo and fuzzing"
    wait "$builds"
    code=$? builds=
    tee -a "$said" <"$said.builds"
    case $code in 0 | 77) ;; *) failed=1 ;; esac
    part_ends "the rest of the other builds"
    # The emulated tests run one after the other and often wait, so they run beside the command's tests.
    echo "== tests of the offpath command, and of aarch64 under qemu with x86-64"
    if [ "$code" = 0 ]; then
        beside "$said.aarch64" tests/aarch64/run.sh "$build"
        emulated=$!
    fi
    command_tests "$emulated" 2>&1 | tee -a "$said" || failed=1
    if [ -n "$emulated" ]; then
        wait "$emulated" || failed=1
        emulated=
        tee -a "$said" <"$said.aarch64"
    fi
    part_ends "the command and aarch64"
    echo "== fuzzing the decoders"
    # The seed is fixed, so that a change passes or fails for its own reasons. `make fuzz` looks for new inputs.
    FUZZ_SEED=${FUZZ_SEED:-1} FUZZ_SECONDS=${FUZZ_SECONDS:-12} scripts/fuzz.sh || failed=1
    part_ends fuzzing
fi

how=()
[ $failed = 0 ] || how=(--failed)
.venv/bin/python scripts/test-report.py "${how[@]}" "$said" "$build/Testing/Temporary/LastTest.log"
(IFS=, && echo "== time: ${times[*]}" | sed 's/,/, /g')
exit $failed
