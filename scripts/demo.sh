#!/usr/bin/env bash
# demo.sh: runs an ordinary MPI program on an emulated cluster, on the host's MPI and with offpath, side by
# side, and then shows a timeline of both. It takes less than a minute. DEMO_RUNS, DEMO_NODES, DEMO_LINK,
# DEMO_BASELINES and DEMO_PROGRAM (a command line) change what it runs.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
nodes=${DEMO_NODES:-4}
link=${DEMO_LINK:-2gbit}
runs=${DEMO_RUNS:-3}
program=${DEMO_PROGRAM:-$build/bin/fft3d --problem schroedinger --n 96 --variables 4 --iterations 4 --planner estimate --alloc mpi --json -}

cat <<TEXT
offpath demo

  $program

This is a distributed 3-D FFT on plain MPI, which knows nothing of offpath. It runs on an emulated cluster on this machine:
$nodes nodes, each a network namespace with a link of $link, ranks started by the real mpirun. It is run $runs time(s) each way:
  host               Open MPI alone: the host's core must itself move the data, so communication waits while it computes
  offpath            the same program; a device beside each node takes the non-blocking collectives over and moves the data meanwhile
  host+thread        Open MPI with its own progress thread for TCP, on the host's core
  host+core          Open MPI alone, given the core that offpath's devices have

TEXT

mkdir -p results
# shellcheck disable=SC2086  # the program is a command line
"$build/bin/offpath" lab compare --nodes "$nodes" --link "$link" --runs "$runs" --baselines "${DEMO_BASELINES:-host+thread,host+core}" \
    --json results/demo.json --plot results/demo.png -- $program

# With more nodes, more of MPICH's ranks and threads would share one core, where each of them polls and none
# yields.
pictures="results/demo.json, a picture is results/demo.png"
if [ -x "${program%% *}-mpich" ] && command -v mpiexec.mpich >/dev/null; then
    cat <<TEXT

The build has this program with MPICH, too. So it is run on 2 of such nodes, beside MPICH, which has a progress thread of its own:
  mpich              MPICH alone
  mpich+core+thread  MPICH with its asynchronous progress, given the core that offpath's devices have

TEXT
    # shellcheck disable=SC2086
    "$build/bin/offpath" lab compare --nodes 2 --link "$link" --runs "${DEMO_RUNS:-2}" --engines host,offpath,mpich,mpich+core+thread \
        --json results/demo-mpich.json --plot results/demo-mpich.png -- $program
    pictures="results/demo.json and results/demo-mpich.json, pictures are results/demo.png and results/demo-mpich.png"
fi

# The program runs once more each way under the tracer. That costs a little time, so no numbers are taken from
# these runs.
traces=results/demo-trace
for way in host offpath; do
    offload=on
    [ $way = host ] && offload=off
    # shellcheck disable=SC2086
    "$build/bin/offpath" lab run --quiet --nodes "$nodes" --link "$link" --offload $offload --trace $traces/$way -- $program >/dev/null
done
"$build/bin/offpath" report $traces/offpath --before $traces/host --output results/demo.html --plot results/demo-timeline.png

cat <<TEXT

All numbers are in $pictures.

See it: results/demo-timeline.png has the same calls of the program both ways, on one scale. With offpath, transfers
lie beside computation; without, they lie within calls of MPI. results/demo.html is a page with the whole timeline,
and https://ui.perfetto.dev opens $traces/offpath/trace.perfetto-trace.

Next:
  $build/bin/offpath run -- mpirun -n 4 ./your_program                          offload a program of yours
  $build/bin/offpath lab run --nodes 4 --link 1gbit -- ./your_program           the same on an emulated cluster
  make bench                                                             overlap, latency, bandwidth and applications
TEXT
