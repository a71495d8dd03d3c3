#!/usr/bin/env bash
# test.sh BUILD: runs every test of a build tree. On the release tree (`build`) also lint.sh, the tests of the Python command, and a
# minute of fuzzing of the two decoders. Non-zero if anything fails. The end says which tests needed a second try, and what was skipped and why.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
failed=0

# Open MPI refuses to run as root unless told so; the tests are often run in containers.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS="detect_leaks=1:${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$PWD/tests/sanitizers/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
export TSAN_OPTIONS="suppressions=$PWD/tests/sanitizers/tsan.supp:${TSAN_OPTIONS:-}"
# UCX patches madvise(), which a thread calls after the sanitizer has let go of it; offpath needs no such hook.
case $build in *tsan*) export UCX_MEM_MMAP_HOOK_MODE=none ;; esac

said=$(mktemp)
trap 'rm -f "$said"' EXIT

if [ "$build" = build ]; then
    echo "== lint"
    scripts/lint.sh || failed=1
fi

echo "== compiled tests ($build)"
# A second try on CI only, whose machines are shared: ctest still prints the first failure, and the end names the tests that needed it.
repeat=()
[ "${CI:-}" = true ] && repeat=(--repeat until-pass:2)
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "${repeat[@]}" 2>&1 | tee -a "$said" || failed=1

if [ "$build" = build ]; then
    # Before the command's tests, one of which needs this build. 77: skipped; the reason is said.
    echo "== aarch64 under qemu, and with x86-64"
    tests/aarch64/run.sh "$build" 2>&1 | tee -a "$said"
    case ${PIPESTATUS[0]} in 0 | 77) ;; *) failed=1 ;; esac
    echo "== tests of the offpath command"
    .venv/bin/python -m pytest -q -rs 2>&1 | tee -a "$said" || failed=1
    echo "== fuzzing the decoders"
    FUZZ_SECONDS=${FUZZ_SECONDS:-30} scripts/fuzz.sh || failed=1
fi

how=()
[ $failed = 0 ] || how=(--failed)
.venv/bin/python scripts/test-report.py "${how[@]}" "$said" "$build/Testing/Temporary/LastTest.log"
exit $failed
