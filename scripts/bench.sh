#!/usr/bin/env bash
# bench.sh: runs the benchmark suite, and writes every number and picture to results/. It takes half an hour
# on two cores. The machine must be idle otherwise. BENCH_RUNS is the number of runs of each measurement, of
# which the median is taken. BENCH_ONLY is a pattern that selects steps by name.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
runs=${BENCH_RUNS:-3}
only=${BENCH_ONLY:-*}
offpath=$build/bin/offpath
failed=()
mkdir -p results

# step NAME COMMAND...: runs COMMAND. Replaces @out by --json results/NAME.json --plot results/NAME.png, and
# @json by the first of these alone.
step() {
    local name=$1 word command=()
    shift
    # shellcheck disable=SC2053  # a pattern
    [[ $name == $only ]] || return 0
    for word in "$@"; do
        case $word in
            @out) command+=(--json "results/$name.json" --plot "results/$name.png") ;;
            @json) command+=(--json "results/$name.json") ;;
            *) command+=("$word") ;;
        esac
    done
    printf '\n== %s\n' "$name"
    "${command[@]}" | tee "results/$name.txt"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$name")
}

load=$(cut -d' ' -f1 /proc/loadavg)
if awk "BEGIN { exit !($load > 0.5) }"; then
    echo "bench: warning: the machine is not idle (load average $load); the numbers will show it" >&2
fi

for shape in 2:2gbit 4:1gbit; do
    nodes=${shape%:*} link=${shape#*:}
    step "overlap-$nodes" "$offpath" bench overlap --nodes "$nodes" --link "$link" --ops ialltoall,iallgather,ibcast --sizes 1M,4M,16M \
        --runs "$runs" @out
    step "latency-$nodes" "$offpath" bench latency --nodes "$nodes" --link "$link" --ops ialltoall,iallgather,ibcast \
        --sizes 1K,16K,64K,256K,1M,4M,16M --runs "$runs" @out
done
step bandwidth "$offpath" bench bandwidth --nodes 2 --link 2gbit --runs "$runs" @out
step fft3d "$offpath" lab compare --nodes 4 --link 2gbit --runs "$runs" --baselines all @out -- \
    "$build/bin/fft3d" --problem schroedinger --n 192 --variables 4 --iterations 3 --alloc mpi --json -
step ring-hpl "$offpath" lab compare --nodes 4 --link 1gbit --runs "$runs" --baselines all --offload-args "--variant group" @out -- \
    "$build/bin/ring-hpl" --json -
step ring-hpl-ibcast "$offpath" lab compare --nodes 4 --link 1gbit --runs "$runs" @out -- "$build/bin/ring-hpl" --variant mpi-ibcast --json -
step overlap-messages "$offpath" bench overlap --nodes 2 --link 2gbit --ops isend,iallreduce,iallgatherv --sizes 1M,4M,16M --runs "$runs" @out
step rma "$offpath" bench rma --busy-target --nodes 2 --sizes 1M --runs "$runs" @json
step overhead "$offpath" bench overhead --runs "$runs" @json
# Devices with remote attach: the host-device link has four times the network's rate. The clients of all nodes
# stage on the one core that all ranks compute on, which costs about 0.4 s per GiB. At these rates that takes
# 5 % of the core; at four times these rates it would take 20 %.
for shape in 2:250mbit 4:125mbit; do
    nodes=${shape%:*} link=${shape#*:}
    step "remote-overlap-$nodes" "$offpath" bench overlap --dpu remote --nodes "$nodes" --link "$link" --ops ialltoall,iallgather,ibcast \
        --sizes 1M,4M --runs "$runs" @out
    step "remote-latency-$nodes" "$offpath" bench latency --dpu remote --nodes "$nodes" --link "$link" --ops ialltoall,iallgather,ibcast \
        --sizes 1M,4M --runs "$runs" @out
done
step remote-fft3d "$offpath" lab compare --dpu remote --nodes 4 --link 500mbit --runs "$runs" @out -- \
    "$build/bin/fft3d" --problem schroedinger --n 192 --variables 4 --iterations 3 --alloc mpi --json -
step staging "$offpath" bench staging --runs "$runs" @out
step osu "$offpath" bench osu --nodes 2 @out
# Target regions need clang 16.
if [ -x "$build/bin/bench-target" ]; then
    for dpu in local remote; do
        step "target-$dpu" "$offpath" bench target --dpu "$dpu" --runs "$runs" @out
    done
    step target-across "$offpath" bench target --nodes 2 --link 2gbit --runs "$runs" @out
fi
step halo "$offpath" study halo --nodes 2,4 --runs "$runs" @out
step halo-500mbit "$offpath" study halo --nodes 2,4 --link 500mbit --sizes-1d '' --sizes-2d 512 --sizes-3d 96 --runs "$runs" @out

if [ ${#failed[@]} -gt 0 ]; then
    echo "bench: failed: ${failed[*]}" >&2
    exit 1
fi
echo "bench: all results are in results/"
