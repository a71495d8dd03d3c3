#!/usr/bin/env bash
# run.sh [BUILD]: runs the tests of the aarch64 build under qemu, and tests of its communication with the host's BUILD (`build`):
#   unit tests    wire test vectors of schedules, control and link messages; matching, memory, engine, transports, link
#   peers         transport and link: two processes over UCX/TCP, one x86-64 and one aarch64; each side is tester once and peer once
#   miniMD        its kernels, and the same thermodynamics on either architecture and in a job of both
#   OpenMP        programs with target regions on an aarch64 device
#   MPI           a job of x86-64 and aarch64 ranks, which splits itself into hosts and devices
#   package       the daemon's arm64 package, installed, run and removed
# Exit code 77, with the reason: the cross build cannot be set up here. gtest itself reports the tests that qemu's user mode cannot run.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
arm=build-aarch64
failed=0

if [ "${OFFPATH_TEST_AARCH64:-on}" = off ]; then
    echo "aarch64: skipped: OFFPATH_TEST_AARCH64=off" >&2
    exit 77
fi
scripts/setup-aarch64.sh || {
    code=$?
    [ $code = 77 ] && echo "aarch64: skipped: the cross build cannot be set up (see above)" >&2
    exit $code
}
programs=(offpathd offpath-target-host offpath-region-mpi-openmpi transport_peer transport_test link_peer link_test test-control test-matching memory_test schedule_test test-engine
    device_ranks_split_test device_ranks_pairing_test offpath-bench-osu example-device-ranks-share minimd minimd_kernels_test)
[ -f $arm/build.ninja ] || cmake --preset aarch64 -DCMAKE_MESSAGE_LOG_LEVEL=WARNING >/dev/null || exit 1
cmake --build $arm -j "${JOBS:-$(nproc)}" --target "${programs[@]}" -- --quiet || exit 1
[ "${2:-}" = --build-only ] && exit 0

check() {
    local what=$1 begin=$SECONDS
    shift
    if timeout 200 "$@" >"$log" 2>&1; then
        echo "aarch64: passed: $what, $((SECONDS - begin)) s$(sed -n 's/^\[  PASSED  \] \([0-9]* tests*\).*/ (\1)/p' "$log")"
        # Each reason of skipped tests once; in the output it comes before the name.
        awk '/: Skipped$/ { getline reason; gsub(/process [0-9]+/, "a process", reason) }
             /^\[  SKIPPED \].*ms\)$/ { ++tests[reason] }
             END { for (reason in tests) printf "aarch64: skipped: %d of them: %s\n", tests[reason], reason }' "$log"
    else
        cat "$log"
        echo "aarch64: FAILED: $what" >&2
        failed=1
    fi
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run=$PWD/$arm/bin/run

check "offpathd --info" "$run" offpathd --info
export OFFPATH_TEST_EMULATED=1
# What takes the emulator minutes and depends on no architecture is left to the host's run of the same tests.
check "schedules" "$run" schedule_test --gtest_filter='-Wire.GivesOnlyValidSchedulesWhenTheChecksumWasForged'
check "control" "$run" test-control
check "matching" "$run" test-matching
check "memory" "$run" memory_test
check "engine" "$run" test-engine --gtest_filter='-*AlltoallSeveralInFlight*:*BcastEveryRoot*'
check "pairing of device ranks" "$run" device_ranks_pairing_test
check "kernels of miniMD" "$run" minimd_kernels_test
check "transports" env OFFPATH_TEST_EMULATOR="$run" "$run" transport_test
check "link" env OFFPATH_TEST_EMULATOR="$run" "$run" link_test
unset OFFPATH_TEST_EMULATED

if [ -x "$build/bin/transport_test" ]; then
    check "transport, x86-64 with an aarch64 peer" env OFFPATH_TEST_PEERS="$PWD/$arm/bin" OFFPATH_TEST_EMULATOR="$run" \
        "$build/bin/transport_test" --gtest_filter='Tls/UcxProcess.*/tcp'
    check "transport, aarch64 with an x86-64 peer" env OFFPATH_TEST_PEERS="$PWD/$build/bin" \
        "$run" transport_test --gtest_filter='Tls/UcxProcess.*/tcp'
fi
if [ -x "$build/bin/link_test" ]; then
    check "link, x86-64 with an aarch64 peer" env OFFPATH_TEST_PEERS="$PWD/$arm/bin" OFFPATH_TEST_EMULATOR="$run" \
        "$build/bin/link_test" --gtest_filter='Processes.*Killed*'
    check "link, aarch64 with an x86-64 peer" env OFFPATH_TEST_PEERS="$PWD/$build/bin" \
        "$run" link_test --gtest_filter='Processes.*Killed*'
fi
if [ -x "$build/bin/minimd" ]; then
    check "miniMD, x86-64 and aarch64" tests/aarch64/minimd.sh "$build/bin/minimd" "$run" $arm/bin/minimd
fi
if [ -x "$build/bin/openmp-hello" ]; then
    for part in examples cases mpi; do
        check "target regions of x86-64 programs: $part" tests/aarch64/openmp.sh "$build" "$PWD/$arm" $part
    done
fi
if [ -x "$build/bin/device_ranks_split_test" ]; then
    check "one MPI job of x86-64 hosts and aarch64 devices" env OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_pml=ob1 \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
        mpirun -n 2 "$build/bin/device_ranks_split_test" 2 1 : -n 1 "$run" $arm/bin/device_ranks_split_test 2 1
fi
if [ -x "$build/bin/example-basic-primitives" ] && command -v dpkg-shlibdeps >/dev/null; then
    check "the arm64 package of the daemon" tests/aarch64/deb.sh "$build" "$arm"
else
    echo "aarch64: skipped: the arm64 package of the daemon: dpkg-shlibdeps, or the host's build, is not here"
fi
exit $failed
