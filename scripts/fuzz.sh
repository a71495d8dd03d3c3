#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each of them for FUZZ_SECONDS (30). Exits with 1 if one of them
# found a failure. build-fuzz/findings keeps the inputs that failed, and build-fuzz/corpus the growing corpus.
# FUZZ_SEED=N makes the same inputs in each run that starts from the same corpus; without it each run makes others.
# usage: scripts/fuzz.sh [TARGET...]      such as fuzz-schedule; all of them without arguments
#        scripts/fuzz.sh --build-only     builds all of them and runs none
set -euo pipefail
cd "$(dirname "$0")/.."
build=${FUZZ_BUILD:-build-fuzz}
seconds=${FUZZ_SECONDS:-30}

build_only=
if [ "${1:-}" = --build-only ]; then build_only=1 && shift; fi
[ -f "$build/build.ninja" ] || cmake --preset fuzz -B "$build" -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target "${@:-fuzz-targets}" -- --quiet
[ -z "$build_only" ] || exit 0

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for program in "$build"/bin/fuzz-*; do
        case "$program" in *-seeds) ;; *) targets+=("$(basename "$program")") ;; esac
    done
fi
if [ ${#targets[@]} -eq 0 ]; then
    echo "fuzz: no targets were built in $build/bin" >&2
    exit 1
fi

# fuzz TARGET: prints its result when it is done, because several targets run at the same time.
fuzz() {
    local target=$1
    local corpus=$build/corpus/$target seeds=$build/seeds/$target findings=$build/findings/$target
    mkdir -p "$corpus" "$seeds" "$findings"
    if [ -x "$build/bin/$target-seeds" ]; then
        "$build/bin/$target-seeds" "$seeds"
    fi
    if "$build/bin/$target" -seed="${FUZZ_SEED:-0}" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$findings/" "$corpus" "$seeds" >"$findings/log" 2>&1; then
        echo "fuzz: $target: $(grep -E 'number_of_executed_units|peak_rss' "$findings/log" | tr -s ' \n' ' ')"
    else
        # The reason stands before libFuzzer's stack, which has no names without its symbolizer.
        grep -avE '^INFO|^ +#[0-9]' "$findings/log" | tail -n 40 >&2
        for input in "$findings"/{crash,oom,timeout}-*; do
            [ -f "$input" ] && echo "fuzz: $(basename "$input") in base64: $(base64 -w0 "$input")" >&2
        done
        return 1
    fi
}

# Runs as many targets at the same time as there are cores.
failed=()
for ((first = 0; first < ${#targets[@]}; first += $(nproc))); do
    begun=("${targets[@]:first:$(nproc)}")
    processes=()
    for target in "${begun[@]}"; do
        echo "fuzz: $target for $seconds s"
        fuzz "$target" &
        processes+=($!)
    done
    for i in "${!begun[@]}"; do
        wait "${processes[i]}" || failed+=("${begun[i]}")
    done
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: failed: ${failed[*]} (inputs and logs: $build/findings)" >&2
    exit 1
fi
